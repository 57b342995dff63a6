"""Hide files from this process and its children, irreversibly, with Landlock.

Landlock (Linux 5.13) needs neither root nor a package: https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os

from pytest_upskill.sandbox.privileges import system_call

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
_LATER_RIGHTS = ((2, 1 << 13), (3, _TRUNCATE), (5, 1 << 15))
# Character devices, sockets, named pipes, block devices.
_MAKE_SPECIAL_FILES = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11
_TRUNCATES_SINCE, _TCP_SINCE, _SCOPES_SINCE = 3, 4, 6


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def abi() -> int:
    """Return the version of Landlock that the kernel supports.

    Raises:
        OSError: The kernel does not support Landlock.
    """
    return system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)


def denies_signals(version: int) -> bool:
    """Return whether this version denies signals to processes outside the sandbox."""
    return version >= _SCOPES_SINCE


def denies_truncation(version: int) -> bool:
    """Return whether this version denies truncating files that are not writable."""
    return version >= _TRUNCATES_SINCE


def restrict(version: int, writable: str, readable: Iterable[str]) -> None:
    """Hide all files except those under the given paths; deny TCP and signals if supported.

    Args:
        version: The version from `abi`.
        writable: The folder in which files, folders and links may be created.
        readable: Files and folders that may be read and executed.

    Raises:
        OSError: A system call fails.
    """
    rights = _FIRST_RIGHTS | sum(bit for since, bit in _LATER_RIGHTS if version >= since)
    network = 3 if version >= _TCP_SINCE else 0
    scopes = 3 if version >= _SCOPES_SINCE else 0
    fields = 1 + (version >= _TCP_SINCE) + (version >= _SCOPES_SINCE)
    attributes = (ctypes.c_uint64 * 3)(rights, network, scopes)
    size = ctypes.c_size_t(8 * fields)
    ruleset = system_call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    for path in readable:
        _allow(ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR, rights)
    _allow(ruleset, writable, rights & ~_MAKE_SPECIAL_FILES, rights)
    _allow(ruleset, "/dev/null", _READ_FILE | _WRITE_FILE | _TRUNCATE, rights)
    system_call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, allowed: int, known: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing path needs no permission
    if not os.path.isdir(path):  # noqa: PTH112 - the script starts in half the time without pathlib
        allowed &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
    rule = _PathBeneath(allowed & known, folder)
    system_call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(folder)
