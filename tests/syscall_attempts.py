"""What a program may try with system calls, and which attempts reach the kernel's own checks.

``python tests/syscall_attempts.py LEVEL`` makes all attempts in the sandbox and prints those that
got through, one a line. Arguments are harmless: where a hole lets a call through, it fails there
for another reason, or changes only what this script has made.
"""

# ruff: noqa: T201 - it is a script

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import get_args

from pytest_upskill.sandbox.limits import Level
from pytest_upskill.sandbox.run import Sandbox, workspace

BEYOND_ITS_FOLDER = {
    "stop another process": "os.kill({process}, 18)",
    "stop it by a thread": "call('tgkill', {process}, {process}, 18)",
    "stop it by its group": "os.killpg(os.getpgid({process}), 18)",
    "open another process": "call(434, {process}, 0)",
    "limit another process": "libc.prlimit({process}, 0, None, (ctypes.c_ulong * 2)(-1, -1))",
    "slow another process": "os.setpriority(os.PRIO_PROCESS, {process}, 19)",
    "pin another process": "os.sched_setaffinity({process}, os.sched_getaffinity(0))",
    "reschedule it": "os.sched_setscheduler({process}, os.SCHED_BATCH, os.sched_param(0))",
    "set its priority of I/O": "call('ioprio_set', 1, {process}, 3 << 13)",
    "trace it": "libc.ptrace(16, {process}, 0, 0)",
    "read its memory": "libc.process_vm_readv({process}, None, 0, None, 0, 0)",
    "signals by a file's owner": "fcntl.fcntl(1, fcntl.F_SETOWN, {process})",
    "change a mode": "os.chmod({victim!r}, 0o777)",
    "change the mode of an open file": "os.fchmod(os.open('../src/input', 0), 0o777)",
    "change times": "os.utime({victim!r}, (1, 1))",
    "change an owner": "os.chown({victim!r}, os.getuid(), os.getgid())",
    "set an attribute": "os.setxattr({victim!r}, 'user.x', b'x')",
    "read an attribute": "os.getxattr({victim!r}, 'user.planted')",
    "truncate": "os.truncate({victim!r}, 0)",
    "truncate by opening": "os.open({victim!r}, os.O_RDONLY | os.O_TRUNC)",
    "truncate what can be read": "os.open('../src/input', os.O_RDONLY | os.O_TRUNC)",
    "lease what can be read": "fcntl.fcntl(os.open('../src/input', 0), fcntl.F_SETLEASE, 0)",
    "flags of what can be read": "fcntl.ioctl(os.open('../src/input', 0), 0x40086602, bytes(8))",
    "watch a folder": "libc.inotify_add_watch(libc.inotify_init(), {folder!r}.encode(), 0xFFF)",
    "send to a socket with a path": (
        "[s for s in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)][0]"
        ".sendto(b'x', {datagrams!r})"
    ),
    "connect to a socket with a path": "socket.socket(socket.AF_UNIX).connect({stream!r})",
    "connect to an abstract socket": "socket.socket(socket.AF_UNIX).connect({abstract!r})",
    "a socket for TCP": "socket.socket().connect(('127.0.0.1', {port}))",
    "a socket for UDP": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "a socket for ICMP": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "attach shared memory": "libc.shmat({memory}, None, 0)",
    "list shared memory": "libc.shmctl(0, 14, ctypes.create_string_buffer(256))",
    "leave shared memory": "libc.shmget(0, 4096, 0o1600)",
    "leave semaphores": "libc.semget(0, 1, 0o1600)",
    "leave a message queue": "libc.msgget(0, 0o1600)",
    "leave a POSIX queue": "libc.mq_open(b'/upskill-test', 0o102, 0o600, None)",
    "the session's keyring": "call('keyctl', 0, -3, 0)",
    "add a key": "call('add_key', b'user', b'upskill', b'x', 1, -2)",
    "look for a key": "call('request_key', b'user', b'upskill', None, -2)",
    "leave the group": "os.setpgid(0, 0)",
    "leave the session": "os.setsid()",
}
"""By name, what the files, processes and settings of the user who runs pytest would suffer."""

OF_THE_KERNEL = {
    "mount": "libc.mount(b'none', b'/', b'no-such-type', 0, None)",
    "unmount": "libc.umount2(b'/no-such-folder', 0)",
    "open a file system": "call(430, b'no-such-type', 0)",
    "configure a file system": "call(431, -1, 0, 0, 0, 0)",
    "mount a file system": "call(432, -1, 0, 0)",
    "pick a file system": "call(433, -1, b'', 0)",
    "open a tree": "call(428, -1, b'', 0)",
    "move a mount": "call(429, -1, b'', -1, b'', 0)",
    "attributes of a mount": "call(442, -1, b'', 0, None, 0)",
    "pivot the root": "call('pivot_root', b'/no-such-folder', b'/no-such-folder')",
    "change the root": "os.chroot('.')",
    "make a device": "os.mknod(os.environ['TMPDIR'] + '/device', 0o20600, os.makedev(1, 3))",
    "make a block device": "os.mknod(os.environ['TMPDIR'] + '/block', 0o60600, os.makedev(7, 0))",
    "make a socket": "os.mknod(os.environ['TMPDIR'] + '/socket', 0o140600)",
    "make a pipe": "os.mkfifo(os.environ['TMPDIR'] + '/pipe')",
    "name the host": "call('sethostname', None, -1)",
    "name the domain": "call('setdomainname', None, -1)",
    "reboot": "call('reboot', 0, 0, 0, 0)",
    "set the clock": "call('clock_settime', -1, None)",
    "adjust the clock": "call('adjtimex', None)",
    "swap": "libc.swapon(b'/no-such-file', 0)",
    "account": "libc.acct(b'/no-such-file')",
    "quotas": "call('quotactl', 0, b'/no-such-file', 0, None)",
    "load a module": "call('init_module', None, 0, None)",
    "load a kernel": "call('kexec_load', 0, 0, None, -1)",
    "read the kernel's log": "call('syslog', 10, None, 0)",
    "BPF": "call('bpf', 0, None, 0)",
    "count events": "call('perf_event_open', None, 0, -1, -1, 0)",
    "io_uring": "call(425, 1, None)",
    "user faults": "call('userfaultfd', 0)",
    "handles of files": "call('open_by_handle_at', -1, None, 0)",
    "watch the system": "libc.fanotify_init(0, 0)",
    "namespaces": "call('unshare', 0x10000000)",
    "namespaces of others": "call('setns', -1, 0)",
    "clone into a namespace": "call('clone', 0x10000000 | 17, 0, 0, 0, 0) or os._exit(1)",
    "another personality": "libc.personality(0x0400000)",
    "another filter": "call('seccomp', 2, 0, None)",
    "another user": "os.setuid(os.getuid())",
    "other groups": "os.setgroups([])",
    "ports": "call('iopl', 0)",
}
"""By name, what changes the machine or opens more of the kernel to attack."""

_NUMBERS = {
    "x86_64": "tgkill 234 ioprio_set 251 keyctl 250 add_key 248 request_key 249 pivot_root 155 "
    "sethostname 170 setdomainname 171 reboot 169 clock_settime 227 adjtimex 159 quotactl 179 "
    "init_module 175 kexec_load 246 syslog 103 bpf 321 perf_event_open 298 userfaultfd 323 "
    "open_by_handle_at 304 unshare 272 setns 308 clone 56 seccomp 317 iopl 172",
    "aarch64": "tgkill 131 ioprio_set 30 keyctl 219 add_key 217 request_key 218 pivot_root 41 "
    "sethostname 161 setdomainname 162 reboot 142 clock_settime 112 adjtimex 171 quotactl 60 "
    "init_module 105 kexec_load 104 syslog 116 bpf 280 perf_event_open 241 userfaultfd 282 "
    "open_by_handle_at 265 unshare 97 setns 268 clone 220 seccomp 277 iopl -1",
}
_SCRIPT = """
import ctypes, errno, fcntl, os, socket, sys
REFUSED = {errno.EPERM, errno.ENOSYS, errno.EACCES}
# What is hidden does not exist, and some refusals are what a lesser file system says.
HIDDEN = {errno.ENOENT, errno.ESRCH, errno.EINVAL, errno.EROFS, errno.EOPNOTSUPP, errno.ENOTTY}
libc = ctypes.CDLL(None, use_errno=True)
words = NUMBERS[os.uname().machine].split()
numbers = dict(zip(words[::2], map(int, words[1::2])))
def call(number, *arguments):
    return libc.syscall(numbers.get(number, number), *arguments)
for name, attempt in ATTEMPTS.items():
    if os.fork():
        os.wait()
        continue
    try:
        ctypes.set_errno(0)
        result = eval(attempt)
        error = ctypes.get_errno() if result == -1 else 0
    except OSError as problem:
        error = problem.errno
    if error not in (REFUSED if name in OF_THE_KERNEL else REFUSED | HIDDEN):
        os.write(1, f"{name}: {errno.errorcode.get(error, error)}\\n".encode())
    os._exit(0)
"""


@contextmanager
def _targets() -> Iterator[dict[str, object]]:
    """Make what the attempts are aimed at."""
    libc = ctypes.CDLL(None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        victim = folder / "victim"
        victim.write_text("untouched")
        victim.chmod(0o644)
        os.utime(victim, (2, 2))
        process = stack.enter_context(subprocess.Popen(["sleep", "60"], start_new_session=True))
        stack.callback(process.kill)
        sockets = [socket.socket(socket.AF_UNIX, kind) for kind in (2, 1, 1)]
        addresses = [str(folder / "datagrams"), str(folder / "stream"), f"\0upskill-{os.getpid()}"]
        for each, address in zip(sockets, addresses, strict=True):
            stack.enter_context(each).bind(address)
        for stream in sockets[1:]:
            stream.listen()
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        memory = libc.shmget(0, 4096, 0o1666)
        stack.callback(libc.shmctl, memory, 0, None)
        priority = os.getpriority(os.PRIO_PROCESS, process.pid)
        yield {
            "folder": str(folder),
            "victim": str(victim),
            "process": process.pid,
            **dict(zip(("datagrams", "stream", "abstract"), addresses, strict=True)),
            "port": server.getsockname()[1],
            "memory": memory,
        }
        # Some calls report success and have no effect.
        after = victim.stat()
        if (after.st_mode & 0o777, after.st_mtime, after.st_size) != (0o644, 2, 9):
            print("the victim has changed")
        if process.poll() is not None or os.getpriority(os.PRIO_PROCESS, process.pid) != priority:
            print("the process has changed")


def main(level: str) -> None:
    """Make all attempts at one level."""
    (known,) = (each for each in get_args(Level) if each == level)
    with _targets() as targets, workspace() as home:
        attempts = {
            name: attempt.format_map(targets) if "{" in attempt else attempt
            for name, attempt in (BEYOND_ITS_FOLDER | OF_THE_KERNEL).items()
        }
        values = {"NUMBERS": _NUMBERS, "ATTEMPTS": attempts, "OF_THE_KERNEL": set(OF_THE_KERNEL)}
        script = "".join(f"{name} = {value!r}\n" for name, value in values.items()) + _SCRIPT
        home.write("src/input", "untouched")
        before = (home.root / "src/input").stat()
        python = str(Path(sys.executable).resolve())
        readable = [Path(sys.base_prefix), Path("/usr/lib")]
        outcome = Sandbox(known).run([python, "-I", "-S", "-c", script], home, readable=readable)
        if (home.root / "src/input").stat() != before:
            print("the input has changed")
    print(outcome.output, end="")
    if not outcome.succeeded:
        print(f"{outcome.ended} {outcome.returncode}")


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    main(*sys.argv[1:])
