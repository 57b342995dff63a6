"""Privileges that a process drops irreversibly before it runs an untrusted program."""

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
    """Make a system call for which the C library has no function, and return its result.

    Raises:
        OSError: The system call fails.
    """
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        raise OSError(
            ctypes.get_errno(), f"system call {number}: {os.strerror(ctypes.get_errno())}"
        )
    return result


def adopt_orphans() -> None:
    """Become the parent of every descendant whose parent exits, if the system supports it."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def drop_capabilities(kept: int = 0) -> None:
    """Drop all capabilities except some, and every way to regain any.

    Args:
        kept: The set of those to keep, as bits; of the first 32 capabilities only.

    Raises:
        OSError: A system call fails.
    """
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot give up new privileges")
    # Both fail without capabilities, which is fine: none can be gained later.
    for capability in range(_CAPABILITIES):
        if not kept >> capability & 1:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _libc.prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    if _libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept)):
        raise OSError(ctypes.get_errno(), "cannot drop capabilities")


def filter_calls(program: bytes) -> None:
    """Apply a filter from `build_allowlist`; `drop_capabilities` must be called first.

    Raises:
        OSError: A system call fails.
    """
    steps = ctypes.create_string_buffer(program, len(program))
    filter_ = _Filter(len(program) // _BYTES_PER_STEP, ctypes.addressof(steps))
    if _libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(filter_)):
        raise OSError(ctypes.get_errno(), "cannot filter system calls")
