"""Run a program that can read only some folders, write only one, and reach nobody.

Called as a script: ``python -I -S landlock.py WRITABLE READABLE:READABLE… PROGRAM ARGUMENT…``.
Landlock (Linux 5.13, https://docs.kernel.org/userspace-api/landlock.html) needs neither root nor
a package. What it does not cover, sockets that are not TCP and leaving the process group that
will be killed, a seccomp filter refuses (https://docs.kernel.org/userspace-api/seccomp_filter.html).
Both are applied here, in a process of their own, because they cannot be taken off again.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PR_SET_NO_NEW_PRIVS = 38
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE = 1 << 14
_FIRST_RIGHTS = (1 << 13) - 1
# Rights that came with later versions of the interface: rename, truncate, ioctl on devices.
_LATER_RIGHTS = ((2, 1 << 13), (3, _TRUNCATE), (5, 1 << 15))
_TCP_SINCE, _SCOPES_SINCE = 4, 6

# By machine: its number in audit, then system calls. To socket, setpgid, setsid, io_uring_setup,
# add_key, request_key and keyctl come, where Landlock cannot hold signals, those that send one.
_REFUSED = {
    "x86_64": (0xC000003E, (41, 109, 112, 425, 248, 249, 250), (62, 129, 200, 234, 297, 424)),
    "aarch64": (0xC00000B7, (198, 154, 157, 425, 217, 218, 219), (129, 138, 130, 131, 240, 424)),
}
_PR_SET_SECCOMP, _FILTER_MODE = 22, 2
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _MACHINE_AT = 0, 4
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050001
_X32 = 0x40000000  # numbers of a second interface to the same calls

_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def abi() -> int:
    """Tell the version of Landlock that the kernel offers, below 1 where it has none."""
    return int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION))


def restrict(writable: str, readable: list[str]) -> None:
    """Hide every file from this process for good, but those under the given paths.

    Sockets, other process groups and signals to the processes of others are denied too.

    Raises:
        OSError: The kernel refuses.
    """
    version = abi()
    rights = _FIRST_RIGHTS | sum(bit for since, bit in _LATER_RIGHTS if version >= since)
    network = 3 if version >= _TCP_SINCE else 0
    scopes = 3 if version >= _SCOPES_SINCE else 0
    fields = 1 + (version >= _TCP_SINCE) + (version >= _SCOPES_SINCE)
    attributes = (ctypes.c_uint64 * 3)(rights, network, scopes)
    size = ctypes.c_size_t(8 * fields)
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    for path in readable:
        _allow(ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR, rights)
    _allow(ruleset, writable, rights, rights)
    _allow(ruleset, "/dev/null", _READ_FILE | _WRITE_FILE | _TRUNCATE, rights)
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot give up new privileges")
    _call(_RESTRICT_SELF, ruleset, 0)
    _filter_calls(signals=version < _SCOPES_SINCE)


def _filter_calls(*, signals: bool) -> None:
    machine = os.uname().machine
    if machine not in _REFUSED:
        raise OSError(0, f"system calls of {machine} are not known")
    audit, calls, sending = _REFUSED[machine]
    numbers = calls + (sending if signals else ())
    steps = [(_LOAD, 0, 0, _MACHINE_AT), (_JUMP_IF_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _KILL)]
    steps += [(_LOAD, 0, 0, _NUMBER_AT), (_JUMP_IF_AT_LEAST, len(numbers) + 1, 0, _X32)]
    steps += [(_JUMP_IF_EQUAL, len(numbers) - i, 0, n) for i, n in enumerate(numbers)]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    filter_ = _Filter(len(steps), ctypes.addressof(program))
    if _libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(filter_)):
        raise OSError(ctypes.get_errno(), "cannot filter system calls")


def _allow(ruleset: int, path: str, allowed: int, known: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no permission
    if not os.path.isdir(path):  # noqa: PTH112 - the script starts in half the time without pathlib
        allowed &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
    rule = _PathBeneath(allowed & known, folder)
    _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(folder)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"landlock: system call {number} failed")
    return result


if __name__ == "__main__":
    restrict(sys.argv[1], sys.argv[2].split(os.pathsep))
    os.execv(sys.argv[3], sys.argv[3:])  # noqa: S606 - to run a program is its purpose
