"""A seccomp filter for untrusted programs: an allowlist of system calls, grouped by risk.

A call that is not on the list fails with ``ENOSYS``, so that a C library falls back to an older
call. A filter sees numbers, not the memory behind pointers, so calls with a path are allowed only
if Landlock or mounts restrict the path.
Format: https://docs.kernel.org/userspace-api/seccomp_filter.html

Each call has a name, its number on x86-64 and its number on arm64, or ``-`` if that architecture
lacks it. The numbers are from the kernel's ``arch/x86/entry/syscalls/syscall_64.tbl`` and
``include/uapi/asm-generic/unistd.h``. Calls in no group are always denied.
"""

from __future__ import annotations

import errno
import math
import os
import struct

TYPE_CHECKING = False  # importing typing takes longer than everything else in the launcher
if TYPE_CHECKING:
    from collections.abc import Iterator

MACHINES = ("x86_64", "aarch64")
_TRUNCATES_SINCE, _SCOPES_SINCE = 3, 6
"""Versions of Landlock that deny truncation, and signals to processes outside."""

HARMLESS = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, preadv 295 69,
pwritev 296 70, preadv2 327 286, pwritev2 328 287, creat 85 -, close 3 57, close_range 436 436,
dup 32 23, dup2 33 -, dup3 292 24, lseek 8 62, stat 4 -, fstat 5 80, lstat 6 -,
newfstatat 262 79, statx 332 291, access 21 -, faccessat 269 48, faccessat2 439 439,
getdents 78 -, getdents64 217 61, readlink 89 -, readlinkat 267 78, mkdir 83 -, mkdirat 258 34,
rmdir 84 -, unlink 87 -, unlinkat 263 35, rename 82 -, renameat 264 38, renameat2 316 276,
link 86 -, linkat 265 37, symlink 88 -, symlinkat 266 36, chdir 80 49, fchdir 81 50,
getcwd 79 17, umask 95 166, ftruncate 77 46, fsync 74 82, fdatasync 75 83,
flock 73 32, statfs 137 43, fstatfs 138 44, sendfile 40 71, copy_file_range 326 285,
splice 275 76, tee 276 77, fadvise64 221 223, poll 7 -, ppoll 271 73,
select 23 -, pselect6 270 72, epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21,
epoll_wait 232 -, epoll_pwait 281 22, eventfd 284 -, eventfd2 290 19, pipe 22 -, pipe2 293 59,
mmap 9 222, munmap 11 215, mremap 25 216, mprotect 10 226, brk 12 214, madvise 28 233,
msync 26 227, membarrier 324 283, fork 57 -, vfork 58 -, execve 59 221, execveat 322 281,
exit 60 93, exit_group 231 94, wait4 61 260, waitid 247 95, getpid 39 172, getppid 110 173,
gettid 186 178, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177,
getgroups 115 158, getresuid 118 148, getresgid 120 150, getpgrp 111 -, getpgid 121 155,
getsid 124 156, set_tid_address 218 96, set_robust_list 273 99, rseq 334 293, arch_prctl 158 -,
futex 202 98, sched_yield 24 124, sched_getaffinity 204 123, sched_getparam 143 121,
sched_getscheduler 145 120, sched_get_priority_max 146 125, sched_get_priority_min 147 126,
getpriority 140 141, getrlimit 97 163, setrlimit 160 164, getrusage 98 165, times 100 153,
sysinfo 99 179, uname 63 160, getcpu 309 168, restart_syscall 219 128, rt_sigaction 13 134,
rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigsuspend 130 133,
rt_sigtimedwait 128 137, sigaltstack 131 132, pause 34 -, alarm 37 -, setitimer 38 103,
getitimer 36 102, signalfd 282 -, signalfd4 289 74, timerfd_create 283 85,
timerfd_settime 286 86, timerfd_gettime 287 87, timer_create 222 107, timer_settime 223 110,
timer_gettime 224 108, timer_getoverrun 225 109, timer_delete 226 111, clock_gettime 228 113,
clock_getres 229 114, clock_nanosleep 230 115, gettimeofday 96 169, time 201 -, nanosleep 35 101,
getrandom 318 278, recvfrom 45 207, sendmsg 46 211, recvmsg 47 212, shutdown 48 210,
getsockname 51 204, getpeername 52 205, getsockopt 55 209, setsockopt 54 208, capget 125 90,
capset 126 91, setresuid 117 147, setresgid 119 149, setgroups 116 159
"""
"""Calls that affect only the caller, its children, and files that it may open anyway.

The last five give up privileges, before a program starts; they gain none without a capability.
"""

CHECKED = """
clone 56 220, prlimit64 302 261, sched_setaffinity 203 122, socketpair 53 199, sendto 44 206,
ioctl 16 29, fcntl 72 25, open 2 -, openat 257 56, prctl 157 167
"""
"""Calls that are harmless with certain arguments only."""

SIGNALS = "kill 62 129, tkill 200 130, tgkill 234 131"
"""Calls that are harmless only if something else protects other processes from signals."""

TRUNCATE = "truncate 76 45"
"""A call that is harmless only if something else protects other files."""

ALLOCATE = "fallocate 285 47"
"""A call that allocates gigabytes of disk at once, before their use can be measured."""

MODES_AND_TIMES = """
chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, utime 132 -, utimes 235 -,
utimensat 280 88, futimesat 261 -
"""
"""Calls that can change modes and times of any file of the user."""

ATTRIBUTES = """
getxattr 191 8, lgetxattr 192 9, fgetxattr 193 10, listxattr 194 11, llistxattr 195 12,
flistxattr 196 13, setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, removexattr 197 14,
lremovexattr 198 15, fremovexattr 199 16
"""
"""Calls that can read or change extended attributes of any file of the user."""

OWNERS_AND_GROUPS = """
chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54, setsid 112 157, setpgid 109 154
"""
"""Calls that can change the owner of any file of the user, or leave the process group."""

BEYOND_NAMESPACES = """
add_key 248 217, request_key 249 218, keyctl 250 219, bpf 321 280, perf_event_open 298 241,
io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427, userfaultfd 323 282,
open_by_handle_at 304 265, init_module 175 105, finit_module 313 273, delete_module 176 106,
kexec_load 246 104, kexec_file_load 320 294, unshare 272 97, setns 308 268, clone3 435 435
"""
"""Calls that reach what no namespace holds, such as the session's keyring, or make namespaces.

The flags of ``clone3`` are behind a pointer, where no filter sees them; a C library falls back to
``clone``.
"""

CHECKED_IN_NAMESPACES = "clone 56 220, socket 41 198, socketpair 53 199"
"""Calls that namespaces hold with certain arguments only."""

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
_CLONE_FILES, _THREAD_WITH_FILES = 0x400, 0x10400
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
        (0, _THREAD_WITH_FILES, (0, _CLONE_FILES, _THREAD_WITH_FILES)),
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


def numbers(group: str, machine: str) -> Iterator[tuple[str, int]]:
    """Yield name and number of each call in a group that exists on a machine."""
    column = 1 + MACHINES.index(machine)
    for entry in group.split(","):
        fields = entry.split()
        if fields[column] != "-":
            yield fields[0], int(fields[column])


def build_allowlist(machine: str, landlock: int | None = None) -> bytes:
    """Return a filter that allows what untrusted programs need.

    It has the format of the kernel and of ``bwrap --seccomp``.

    Args:
        machine: One of `MACHINES`.
        landlock: The version of Landlock that confines files; None if mounts and namespaces do,
            so that all calls on files, processes and groups can be allowed.
    """

    def unless_held(since: float, answer: int) -> int:
        return _ALLOW if landlock is None or landlock >= since else answer

    answers = {
        HARMLESS: _ALLOW,
        SIGNALS: unless_held(_SCOPES_SINCE, _FAIL | errno.EPERM),
        TRUNCATE: unless_held(_TRUNCATES_SINCE, _FAIL | errno.EPERM),
        # With this error, the C library writes zeros instead.
        ALLOCATE: _FAIL | errno.EOPNOTSUPP,
        # Programs that copy or unpack files also set modes and times: pretend that this succeeds.
        MODES_AND_TIMES: unless_held(math.inf, _FAIL),
        ATTRIBUTES: unless_held(math.inf, _FAIL | errno.EOPNOTSUPP),
        OWNERS_AND_GROUPS: unless_held(math.inf, _FAIL | errno.EPERM),
    }
    steps = _start(machine)
    for group, answer in answers.items():
        steps += _answer(group, machine, answer)
    for name, number in numbers(CHECKED, machine):
        tests = _check(_TESTS[name], errno.ENOTTY if name == "ioctl" else errno.EPERM)
        steps += [(_JUMP_IF_EQUAL, 0, len(tests), number), *tests]
    return _pack([*steps, (_RETURN, 0, 0, _FAIL | errno.ENOSYS)])


def build_denylist(machine: str) -> bytes:
    """Return a filter that allows all calls except those that reach beyond namespaces.

    It also denies what no measurement of a program's files could keep up with.

    Args:
        machine: One of `MACHINES`.
    """
    denied = _FAIL | errno.ENOSYS
    steps = [*_start(machine), (_JUMP_IF_LEAST, 0, 1, _X32), (_RETURN, 0, 0, denied)]
    steps += _answer(BEYOND_NAMESPACES, machine, denied)
    steps += _answer(ALLOCATE, machine, _FAIL | errno.EOPNOTSUPP)
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


def _answer(group: str, machine: str, answer: int) -> Iterator[_Step]:
    """Yield steps that answer the calls of a group, whatever their arguments are."""
    for _, number in numbers(group, machine):
        yield from ((_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer))


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
