"""A seccomp filter for untrusted programs: an allowlist of system calls.

A call that is not on the list fails with ``ENOSYS``, so that a C library falls back to an older
call. A filter sees numbers, not the memory behind pointers, so calls with a path are allowed only
if Landlock or mounts restrict the path.
Format: https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

from __future__ import annotations

import errno
import os
import struct

from pytest_upskill.sandbox.syscalls import (
    ALLOCATE,
    ATTRIBUTES,
    BEYOND_NAMESPACES,
    CHECKED,
    CHECKED_IN_NAMESPACES,
    GROUPS,
    HARMLESS,
    MACHINES,
    MODES_AND_TIMES,
    OWNERS,
    SIGNALS,
    TRUNCATE,
    numbers,
)

_AUDIT_NUMBERS = dict(zip(MACHINES, (0xC000003E, 0xC00000B7), strict=True))
_LOAD, _AND, _JUMP_IF_EQUAL, _JUMP_IF_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_ALL_BITS = 0xFFFFFFFF
_X32 = 0x40000000
"""From here on, x86-64 has every call a second time."""

# Queries of terminals and of readable bytes, non-blocking mode and close-on-exec. Others can change
# files that are only open for reading.
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# Duplicates, flags, locks, pipe sizes, seals. Others send signals, or block processes that open a
# file.
_FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1031, 1032, 1033, 1034)
# Parent-death signal, core dumps, process name, capabilities (which are kept, ambient, and in the
# bounding set, and how root has them), names of memory mappings.
_PRCTLS = (1, 2, 3, 4, 8, 15, 16, 21, 23, 27, 28, 37, 38, 39, 47, 0x53564D41)
_NEW_NAMESPACES = 0x7E020000
_CLONE_FILES, _CLONE_THREAD = 0x400, 0x10000
_AF_UNIX = _SOCK_STREAM = 1
_AF_INET, _AF_INET6, _AF_NETLINK = 2, 10, 16
# O_TRUNC needs write access, because old versions of Landlock do not check it by itself.
_OPENS = (0, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_TRUNC)
_OPEN_MASK = os.O_ACCMODE | os.O_TRUNC
# By call: index of a 32-bit half of an argument (twice the argument's index, plus one for the upper
# half), mask, and allowed values.
_TESTS = {
    "clone": (
        (0, _NEW_NAMESPACES, (0,)),
        # Threads of one process have the same open files, so that all of them can be measured.
        (
            0,
            _CLONE_THREAD | _CLONE_FILES,
            (0, _CLONE_FILES, _CLONE_THREAD | _CLONE_FILES),
        ),
    ),
    "prlimit64": ((0, _ALL_BITS, (0,)),),
    "sched_setaffinity": ((0, _ALL_BITS, (0,)),),
    # Stream sockets only: a datagram socket could send to any path.
    "socketpair": ((0, _ALL_BITS, (_AF_UNIX,)), (2, 0xF, (_SOCK_STREAM,))),
    "sendto": ((8, _ALL_BITS, (0,)), (9, _ALL_BITS, (0,))),
    "ioctl": ((2, _ALL_BITS, _IOCTLS),),
    "fcntl": ((2, _ALL_BITS, _FCNTLS),),
    "prctl": ((0, _ALL_BITS, _PRCTLS),),
    "open": ((2, _OPEN_MASK, _OPENS),),
    "openat": ((4, _OPEN_MASK, _OPENS),),
}

_FAMILIES = ((0, _ALL_BITS, (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)),)
_TESTS_IN_NAMESPACES = {"clone": _TESTS["clone"], "socket": _FAMILIES, "socketpair": _FAMILIES}

_Step = tuple[int, int, int, int]
_Test = tuple[int, int, tuple[int, ...]]


def build_allowlist(
    machine: str, *, files_confined: bool, signals_confined: bool, truncation_confined: bool
) -> bytes:
    """Return a filter that allows what untrusted programs need.

    It has the format of the kernel and of ``bwrap --seccomp``. Each flag says whether something
    else already confines some calls, so that the filter can allow them.

    Args:
        machine: One of `MACHINES`.
        files_confined: For calls that change modes, times, owners or attributes of files, or
            leave the process group.
        signals_confined: For calls that send signals.
        truncation_confined: For ``truncate``.
    """
    steps = _start(machine)
    answers = {HARMLESS: _ALLOW, SIGNALS: _ALLOW if signals_confined else _FAIL | errno.EPERM}
    answers[TRUNCATE] = _ALLOW if truncation_confined else _FAIL | errno.EPERM
    # With this error, the C library writes zeros instead.
    answers[ALLOCATE] = _FAIL | errno.EOPNOTSUPP
    # Programs that copy or unpack files also set modes and times: pretend that this succeeds.
    answers[MODES_AND_TIMES] = _ALLOW if files_confined else _FAIL
    answers[ATTRIBUTES] = _ALLOW if files_confined else _FAIL | errno.EOPNOTSUPP
    answers[OWNERS] = answers[GROUPS] = _ALLOW if files_confined else _FAIL | errno.EPERM
    for group, answer in answers.items():
        for _, number in numbers(group, machine):
            steps += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    for name, number in numbers(CHECKED, machine):
        tests = _check(_TESTS[name], errno.ENOTTY if name == "ioctl" else errno.EPERM)
        steps += [(_JUMP_IF_EQUAL, 0, len(tests), number), *tests]
    steps.append((_RETURN, 0, 0, _FAIL | errno.ENOSYS))
    return _pack(steps)


def build_denylist(machine: str) -> bytes:
    """Return a filter that allows all calls except those that reach beyond namespaces.

    It also denies what no measurement of a program's files could keep up with.

    Args:
        machine: One of `MACHINES`.
    """
    denied = _FAIL | errno.ENOSYS
    steps: list[_Step] = [*_start(machine), (_JUMP_IF_LEAST, 0, 1, _X32), (_RETURN, 0, 0, denied)]
    for _, number in numbers(BEYOND_NAMESPACES, machine):
        steps += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, denied)]
    for _, number in numbers(ALLOCATE, machine):
        steps += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | errno.EOPNOTSUPP)]
    for name, number in numbers(CHECKED_IN_NAMESPACES, machine):
        error = errno.EPERM if name == "clone" else errno.EAFNOSUPPORT
        tests = _check(_TESTS_IN_NAMESPACES[name], error)
        steps += [(_JUMP_IF_EQUAL, 0, len(tests), number), *tests]
    return _pack([*steps, (_RETURN, 0, 0, _ALLOW)])


def _start(machine: str) -> list[_Step]:
    """Return steps that kill programs of another machine, and load the number of the call."""
    return [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_JUMP_IF_EQUAL, 1, 0, _AUDIT_NUMBERS[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]


def _pack(steps: list[_Step]) -> bytes:
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _check(tests: tuple[_Test, ...], error: int) -> list[_Step]:
    """Return steps that allow a call if its arguments pass all tests, and fail it otherwise."""
    steps: list[_Step] = []
    for half, mask, values in tests:
        steps += [(_LOAD, 0, 0, _ARGUMENTS_AT + 4 * half), (_AND, 0, 0, mask)]
        last = len(values) - 1
        # A match jumps over the remaining values and the failure.
        steps += [(_JUMP_IF_EQUAL, last - i + 1, 0, value) for i, value in enumerate(values)]
        steps.append((_RETURN, 0, 0, _FAIL | error))
    return [*steps, (_RETURN, 0, 0, _ALLOW)]
