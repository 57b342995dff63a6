"""What a process gives up, irreversibly, before it runs an untrusted program.

Files are hidden with Landlock (Linux 5.13), which needs neither root nor a package:
https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os

from pytest_upskill.sandbox.seccomp import SCOPES_SINCE, TRUNCATES_SINCE

TYPE_CHECKING = False  # importing typing takes longer than everything else in the launcher
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE = 1 << 14
_FIRST_RIGHTS = (1 << 13) - 1
# Rights that later versions of the interface added: rename, truncate, ioctl on devices.
_LATER_RIGHTS = ((2, 1 << 13), (TRUNCATES_SINCE, _TRUNCATE), (5, 1 << 15))
# Character devices, sockets, named pipes, block devices.
_MAKE_SPECIAL_FILES = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11
_TCP_SINCE = 4
"""The version of Landlock that denies TCP."""

_PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 24, 36, 38
_PR_CAP_AMBIENT, _CLEAR_ALL = 47, 4
_PR_SET_SECCOMP, _FILTER_MODE = 22, 2
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64
_BYTES_PER_STEP = 8

_libc = ctypes.CDLL(None, use_errno=True)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


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


def landlock_version() -> int:
    """Return the version of Landlock that the kernel supports.

    Raises:
        OSError: The kernel does not support Landlock.
    """
    return _system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)


def restrict_files(version: int, writable: str, readable: Iterable[str]) -> None:
    """Hide all files except those under the given paths; deny TCP and signals if supported.

    Args:
        version: The version from `landlock_version`.
        writable: The folder in which files, folders and links may be created.
        readable: Files and folders that may be read and executed.

    Raises:
        OSError: A system call fails.
    """
    rights = _FIRST_RIGHTS | sum(bit for since, bit in _LATER_RIGHTS if version >= since)
    # Of files, TCP and scopes, the size leaves out what the kernel does not know.
    attributes = (ctypes.c_uint64 * 3)(rights, 3, 3)
    size = ctypes.c_size_t(8 * (1 + (version >= _TCP_SINCE) + (version >= SCOPES_SINCE)))
    ruleset = _system_call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    for path in readable:
        _allow(ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR, rights)
    _allow(ruleset, writable, rights & ~_MAKE_SPECIAL_FILES, rights)
    _allow(ruleset, "/dev/null", _READ_FILE | _WRITE_FILE | _TRUNCATE, rights)
    _system_call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, allowed: int, known: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing path needs no permission
    if not os.path.isdir(path):  # noqa: PTH112 - the script starts in half the time without pathlib
        allowed &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
    rule = _PathBeneath(allowed & known, folder)
    _system_call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(folder)


def _system_call(number: int, *arguments: object) -> int:
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
