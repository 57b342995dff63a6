"""What a process gives up for good before it runs a program that nobody trusts."""

from __future__ import annotations

import ctypes
import os

_PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 24, 36, 38
_PR_CAP_AMBIENT, _CLEAR_ALL = 47, 4
_PR_SET_SECCOMP, _FILTER_MODE = 22, 2
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64
_BYTES_PER_STEP = 8

_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def system_call(number: int, *arguments: object) -> int:
    """Make a system call that the C library has no function for.

    Raises:
        OSError: It fails.
    """
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        raise OSError(
            ctypes.get_errno(), f"system call {number}: {os.strerror(ctypes.get_errno())}"
        )
    return result


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends; does nothing where unknown."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def drop_capabilities() -> None:
    """Give up all capabilities, and every way to get any back.

    Raises:
        OSError: The kernel refuses.
    """
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot give up new privileges")
    # Both fail for who has none: to a user without capabilities nothing can be added any more.
    for capability in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _libc.prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    if _libc.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "cannot drop capabilities")


def filter_calls(program: bytes) -> None:
    """Apply a filter as `build_filter` makes it; needs `drop_capabilities` first.

    Raises:
        OSError: The kernel refuses.
    """
    steps = ctypes.create_string_buffer(program, len(program))
    filter_ = _Filter(len(program) // _BYTES_PER_STEP, ctypes.addressof(steps))
    if _libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(filter_)):
        raise OSError(ctypes.get_errno(), "cannot filter system calls")
