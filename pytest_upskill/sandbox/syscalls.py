"""System calls of programs in the sandbox, grouped by risk.

Each entry is a name, its number on x86-64 and its number on arm64, or ``-`` if that architecture
lacks the call. The numbers are from the kernel's ``arch/x86/entry/syscalls/syscall_64.tbl`` and
``include/uapi/asm-generic/unistd.h``. Calls in no group are always denied.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing takes longer than everything else in the launcher
if TYPE_CHECKING:
    from collections.abc import Iterator

MACHINES = ("x86_64", "aarch64")

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

SIGNALS = """
kill 62 129, tkill 200 130, tgkill 234 131
"""
"""Calls that are harmless only if something else protects other processes from signals."""

TRUNCATE = """
truncate 76 45
"""
"""A call that is harmless only if something else protects other files."""

ALLOCATE = """
fallocate 285 47
"""
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

OWNERS = """
chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54
"""
"""Calls that can change the owner of any file of the user."""

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

CHECKED_IN_NAMESPACES = """
clone 56 220, socket 41 198, socketpair 53 199
"""
"""Calls that namespaces hold with certain arguments only."""

GROUPS = """
setsid 112 157, setpgid 109 154
"""
"""Calls that can leave the process group."""


def numbers(group: str, machine: str) -> Iterator[tuple[str, int]]:
    """Yield name and number of each call in a group that exists on a machine."""
    column = 1 + MACHINES.index(machine)
    for entry in group.split(","):
        fields = entry.split()
        if fields[column] != "-":
            yield fields[0], int(fields[column])
