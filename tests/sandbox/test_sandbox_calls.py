"""System calls that reach beyond a program's own folder and processes are refused."""

from __future__ import annotations

import errno
import os
import platform
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_upskill.sandbox.limits import Level
from pytest_upskill.sandbox.seccomp import (
    ALLOCATE,
    ATTRIBUTES,
    BEYOND_NAMESPACES,
    CHECKED,
    CHECKED_IN_NAMESPACES,
    MACHINES,
    MODES_AND_TIMES,
    OWNERS_AND_GROUPS,
    SIGNALS,
    TRUNCATE,
    build_allowlist,
    build_denylist,
    numbers,
)
from pytest_upskill.sandbox.seccomp import HARMLESS as HARMLESS_CALLS
from tests.pages import CHECKOUT
from tests.sandbox_programs import LEVELS

HARMLESS: dict[Level, set[str]] = {
    # In a process namespace of its own nothing escapes that way.
    "bwrap": {"leave the group: 0", "leave the session: 0"},
    # Reported as done, but not done.
    "landlock": {"change a mode: 0", "change the mode of an open file: 0", "change times: 0"},
}
confining = pytest.mark.parametrize("level", [level for level in LEVELS if level in HARMLESS])


def _attempts(python: list[str], level: Level) -> set[str]:
    done = subprocess.run(
        [*python, str(CHECKOUT / "tests" / "syscall_attempts.py"), level],
        env={"PYTHONPATH": str(CHECKOUT), "PATH": os.environ["PATH"], "TMPDIR": "/tmp"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.splitlines())


@confining
def test_system_calls_reach_nothing_outside_of_the_sandbox(level: Level) -> None:
    assert _attempts([sys.executable], level) == HARMLESS[level]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@confining
def test_system_calls_of_an_ordinary_user_reach_nothing_either(level: Level) -> None:
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    # The interpreter of the tests may lie in root's own home.
    for python in (str(Path(sys.executable).resolve()), "/usr/bin/python3"):
        if subprocess.run([*become, "test", "-x", python], check=False).returncode == 0:
            break

    assert _attempts([*become, python], level) == HARMLESS[level]


def decision(program: bytes, machine: str, call: str, *arguments: int) -> int:
    """Return what the kernel does about a call: 0 to allow it, the error, or -1 to kill."""
    known = dict(numbers(",".join(GROUPS_OF_CALLS), machine)) if machine in MACHINES else {}
    number = known.get(call.removeprefix("x32 "), 9999) | (call.startswith("x32 ") << 30)
    audit = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "i386": 0x40000003}[machine]
    data = struct.pack("=IIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    while True:
        code, jump_if, jump_else, operand = steps[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == 0x54:
            value &= operand
        elif code == 0x15:
            at += jump_if if value == operand else jump_else
        elif code == 0x35:
            at += jump_if if value >= operand else jump_else
        elif code == 0x06:
            return {0x7FFF0000: 0, 0x80000000: -1}.get(operand, operand & 0xFFFF or FAKED)
        else:
            raise AssertionError(f"unknown step {code:#x}")


FAKED = -2
GROUPS_OF_CALLS = (
    *(HARMLESS_CALLS, CHECKED, CHECKED_IN_NAMESPACES, SIGNALS, TRUNCATE, ALLOCATE),
    *(MODES_AND_TIMES, ATTRIBUTES, OWNERS_AND_GROUPS, BEYOND_NAMESPACES),
)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("read", (), 0),
        ("mount", (), errno.ENOSYS),
        ("clone", (0x01200011,), 0),
        ("clone", (0x10000011,), errno.EPERM),
        ("clone3", (), errno.ENOSYS),
        ("prlimit64", (0, 7), 0),
        ("prlimit64", (42, 7), errno.EPERM),
        ("sched_setaffinity", (42,), errno.EPERM),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC), 0),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_DGRAM), errno.EPERM),
        ("socketpair", (30, socket.SOCK_STREAM), errno.EPERM),
        ("socket", (), errno.ENOSYS),
        ("sendto", (3, 0, 0, 0, 0), 0),
        ("sendto", (3, 0, 0, 0, 0xDEAD), errno.EPERM),
        ("sendto", (3, 0, 0, 0, 1 << 32), errno.EPERM),
        ("ioctl", (1, 0x5401), 0),
        ("ioctl", (1, 0x5412), errno.ENOTTY),
        ("fcntl", (1, 1030), 0),
        ("fcntl", (1, 8), errno.EPERM),
        ("prctl", (15,), 0),
        ("prctl", (36,), errno.EPERM),
        ("openat", (3, 0, os.O_RDONLY | os.O_CLOEXEC), 0),
        ("openat", (3, 0, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 0),
        ("openat", (3, 0, os.O_RDONLY | os.O_TRUNC), errno.EPERM),
        ("openat", (3, 0, os.O_ACCMODE | os.O_TRUNC), errno.EPERM),
        ("fchmodat", (), FAKED),
        ("utimensat", (), FAKED),
        ("fallocate", (), errno.EOPNOTSUPP),
        ("fchownat", (), errno.EPERM),
        ("getxattr", (), errno.EOPNOTSUPP),
        ("setsid", (), errno.EPERM),
        # What an old version of Landlock does not hold, as those of Linux 5.13 to 6.1.
        ("kill", (), errno.EPERM),
        ("tgkill", (), errno.EPERM),
        ("truncate", (), errno.EPERM),
    ],
)
def test_the_filter_decides_by_call_and_arguments(
    machine: str, call: str, arguments: tuple[int, ...], expected: int
) -> None:
    program = build_allowlist(machine, landlock=1)

    assert decision(program, machine, call, *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("call", ["kill", "truncate", "fchmodat", "fchownat", "setxattr", "setsid"])
def test_the_filter_allows_what_something_else_holds(machine: str, call: str) -> None:
    program = build_allowlist(machine)

    assert decision(program, machine, call) == 0


@pytest.mark.parametrize("machine", MACHINES)
def test_an_open_filter_denies_only_what_reaches_beyond_namespaces(machine: str) -> None:
    program = build_denylist(machine)

    for call in ("read", "kill", "setsid"):
        assert decision(program, machine, call) == 0
    for call in ("keyctl", "bpf", "io_uring_setup", "x32 keyctl", "unshare", "setns", "clone3"):
        assert decision(program, machine, call) == errno.ENOSYS
    assert decision(program, machine, "fallocate") == errno.EOPNOTSUPP
    assert decision(program, "i386", "read") == -1


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_an_open_filter_allows_only_sockets_that_a_namespace_holds(machine: str, call: str) -> None:
    program = build_denylist(machine)

    allowed = [
        family
        for family in range(1, 64)
        if decision(program, machine, call, family) != errno.EAFNOSUPPORT
    ]

    assert allowed == [socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(0x01200011, 0, id="a process"),
        pytest.param(0x003D0F00, 0, id="a thread"),
        pytest.param(0x003D0B00, errno.EPERM, id="a thread whose open files are its own"),
        pytest.param(0x10000011, errno.EPERM, id="a user namespace"),
        pytest.param(0x00020011, errno.EPERM, id="a namespace of mounts"),
    ],
)
def test_every_filter_denies_new_namespaces_and_threads_with_files_of_their_own(
    machine: str, flags: int, expected: int
) -> None:
    held = build_allowlist(machine)

    for program in (build_denylist(machine), held):
        assert decision(program, machine, "clone", flags) == expected


def test_calls_in_the_numbers_of_another_machine_kill() -> None:
    program = build_allowlist("x86_64")

    assert decision(program, "i386", "read") == -1


@pytest.mark.needs("gcc")
def test_the_numbers_are_those_of_this_machine() -> None:
    table = dict(numbers(",".join(GROUPS_OF_CALLS), platform.machine()))
    source = "#include <sys/syscall.h>\n" + "".join(f"@{name} SYS_{name}\n" for name in table)

    lines = subprocess.run(
        ["gcc", "-E", "-P", "-"], input=source, capture_output=True, text=True, check=True
    ).stdout.splitlines()

    known = {
        name: int(number)
        for name, number in (line[1:].split() for line in lines if line.startswith("@"))
        if number.isdecimal()  # the headers may be older than a call
    }
    assert len(known) > 150
    assert known == {name: table[name] for name in known}
