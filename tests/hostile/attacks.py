"""Attacks in Python that an answer makes while it runs: thefts, harm, deceit and bombs.

Nothing here is harmful if it succeeds: the targets are secrets, files and processes made for it.
"""

# Attacks read best on lines of their own.
# ruff: noqa: E501

from __future__ import annotations

from tests.sandbox_programs import HIDING_FILES, hiding_files

THEFTS = {
    "file": "open({secret!r}).read()",
    "file by descriptor": "os.read(os.open({secret!r}, os.O_RDONLY), 99).decode()",
    "file by link": "(os.symlink({secret!r}, t + '/l'), open(t + '/l').read())[1]",
    "file by hard link": "(os.link({secret!r}, t + '/h'), open(t + '/h').read())[1]",
    "file by copy": "(shutil.copy({secret!r}, t + '/c'), open(t + '/c').read())[1]",
    "file by rename": "(os.rename({secret!r}, t + '/r'), open(t + '/r').read())[1]",
    "file by cat": "subprocess.check_output(['cat', {secret!r}], text=True)",
    "file by shell": "subprocess.check_output('cat ' + {secret!r}, shell=True, text=True)",
    "file by the C library": "(b := ctypes.create_string_buffer(99), libc.fread(b, 1, 98, "
    "ctypes.c_void_p(fopen({secret!r}.encode(), b'r'))))[0].value.decode()",
    "file by root of process": "open('/proc/1/root' + {secret!r}).read()",
    "file by own root": "open('/proc/self/root' + {secret!r}).read()",
    "file by folder of pytest": "open('/proc/{pid}/root' + {secret!r}).read()",
    "folder": "[n for n in os.listdir({folder!r}) if 'secret' in n][0] and {marker!r}",
    "handle": "libc.name_to_handle_at(-100, {secret!r}.encode(), None, None, 0) == 0 and {marker!r}",
    "users": "open('/etc/passwd').read() and {marker!r}",
    "hosts": "open('/etc/hostname').read() and {marker!r}",
    "attribute": "os.getxattr({secret!r}, 'user.secret').decode()",
    "environment": "' '.join(os.environ.values())",
    "environment in /proc": "open('/proc/self/environ').read()",
    "environment of the parent": "open(f'/proc/{{os.getppid()}}/environ').read()",
    "environment of another": "open('/proc/{victim}/environ').read()",
    "environment of all": "''.join(open(p, errors='replace').read() for p in glob.glob('/proc/[0-9]*/environ') "
    "if os.access(p, 4))",
    "commands of others": "[c for p in glob.glob('/proc/[0-9]*/cmdline') "
    "for c in [open(p).read()] if {marker!r} in c][0]",
    "memory of pytest": "open('/proc/{pid}/maps').read() and {marker!r}",
    "memory by call": "libc.process_vm_readv({pid}, None, 0, None, 0, 0) == 0 and {marker!r}",
    "trace": "libc.ptrace(16, {victim}, 0, 0) == 0 and {marker!r}",
    "files of pytest": "os.listdir('/proc/{pid}/fd') and {marker!r}",
    "TCP": "socket.create_connection(('127.0.0.1', {port}), 2).recv(99).decode()",
    "TCP over IPv6": "socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', {port})) "
    "or {marker!r}",
    "UDP": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9)) and {marker!r}",
    "raw packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW) and {marker!r}",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).bind((0, 0)) or {marker!r}",
    "names": "socket.getaddrinfo('localhost', 80) and socket.socket() and {marker!r}",
    "socket with a path": "(s := socket.socket(socket.AF_UNIX), s.connect({unix!r}), "
    "s.recv(99))[2].decode()",
    "socket without a path": "(s := socket.socket(socket.AF_UNIX), s.connect({abstract!r}), "
    "s.recv(99))[2].decode()",
    "datagrams": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]"
    ".sendto(b'x', {datagrams!r}) and {marker!r}",
    "shared memory": "ctypes.string_at(libc.shmat({memory}, None, 0)).decode()",
    "keyring": "(b := ctypes.create_string_buffer(99), libc.syscall(keyctl, 11, "
    "libc.syscall(keyctl, 10, -3, b'user', b'upskill-hostile', 0), b, 98))[0].value.decode()",
    "watching a folder": "libc.inotify_add_watch(libc.inotify_init(), {folder!r}.encode(), 4095) "
    "> 0 and {marker!r}",
    "watching a file system": "libc.fanotify_mark(libc.fanotify_init(0, 0), 1, 2, -100, {folder!r}.encode()) "
    "== 0 and {marker!r}",
    "file by a known handle": "os.read(libc.open_by_handle_at(os.open('/usr', 0), {handle!r}, 0), 99).decode()",
    "descriptor of pytest": "os.read(libc.syscall(438, libc.syscall(434, {pid}, 0), {descriptor}, 0), 99).decode()",
    "memory in /proc": "open('/proc/{victim}/mem', 'rb') and {marker!r}",
    "trace without stopping": "libc.ptrace(0x4206, {victim}, 0, 0) == 0 and {marker!r}",
    "comparing with pytest": "libc.syscall(number(312, 272), os.getpid(), {pid}, 1, 0, 0) >= 0 and {marker!r}",
    "page faults": "libc.syscall(number(323, 282), 1) >= 0 and {marker!r}",
    "io_uring": "libc.syscall(425, 8, bytes(120)) >= 0 and {marker!r}",
    "BPF": "libc.syscall(number(321, 280), 0, struct.pack('5I', 2, 4, 4, 1, 0) + bytes(100), 72) >= 0 and {marker!r}",
    "events of the machine": "libc.syscall(number(298, 241), struct.pack('IIQ', 1, 112, 0) + bytes(96), -1, 0, -1, 0) "
    ">= 0 and {marker!r}",
    "namespace of users": "libc.unshare(0x10000000) == 0 and {marker!r}",
    "namespace by clone3": "libc.syscall(435, struct.pack('11Q', 0x10000000, 0, 0, 0, 17, *bytes(6)), 88) > 0 "
    "and {marker!r}",
    "namespace of pytest": "libc.setns(os.open('/proc/{pid}/ns/net', 0), 0) == 0 and {marker!r}",
    "the kernel's log": "libc.klogctl(3, ctypes.create_string_buffer(99), 99) >= 0 and {marker!r}",
    "the kernel's log in /dev": "os.open('/dev/kmsg', os.O_NONBLOCK) and {marker!r}",
    "the terminal": "os.open('/dev/tty', os.O_RDWR) and {marker!r}",
    "keys in /proc": "'upskill-hostile' in open('/proc/keys').read() and {marker!r}",
    "shared memory in /dev": "open('/dev/shm/{shared}').read()",
    "settings of the kernel": "first(lambda p: os.open(p, os.O_WRONLY), glob.glob('/proc/sys/*/*') + "
    "glob.glob('/proc/irq/*/*') + ['/proc/sysrq-trigger', '/proc/kcore']) and {marker!r}",
    # None of those that do something when they are opened, as a watchdog does.
    "devices": "first(lambda p: os.open(p, os.O_RDONLY | os.O_NONBLOCK), ['/dev/' + n for n in "
    "('mem', 'port', 'fuse', 'kvm', 'loop-control', 'vda', 'sda', 'ptmx', 'net/tun')]) and {marker!r}",
    "any other socket": "first(lambda f: socket.socket(f >> 3, f & 7), range(16, 46 << 3)) and {marker!r}",
    "files of other programs": "first(lambda p: open(p).read(), glob.glob('/proc/[0-9]*/fd/*') + "
    "glob.glob({temporary!r} + '/upskill-*/src/*')) and first(os.listdir, ['/proc/{pid}']) and {marker!r}",
    "file as another user": "(libc.setresuid(0, 0, 0), open({secret!r}).read())[1]",
    "file with a capability": "(libc.prctl(47, 2, 2, 0, 0), open({secret!r}).read())[1]",
}
"""Python that is worth something only if it holds the secret."""

HARMS = {
    "write": "open({folder!r} + '/written', 'w').write('x')",
    "overwrite": "open({file!r}, 'w').write('x')",
    "append": "open({file!r}, 'a').write('x')",
    "truncate": "os.truncate({file!r}, 0)",
    "delete": "os.unlink({file!r})",
    "rename": "os.rename({file!r}, {file!r} + '2')",
    "link": "os.symlink('/etc', {folder!r} + '/link')",
    "folder": "os.mkdir({folder!r} + '/made')",
    "mode": "os.chmod({file!r}, 0o777)",
    "time": "os.utime({file!r}, (1, 1))",
    "signal": "os.kill({victim}, 9)",
    "signal to all": "os.kill({victim}, 19)",
    "limit": "libc.prlimit({victim}, 7, (ctypes.c_ulong * 2)(3, 3), None) and 1 / 0",
    "priority": "os.setpriority(os.PRIO_PROCESS, {victim}, 19)",
    "processors": "os.sched_setaffinity({victim}, {{0}})",
    "choice when memory is short": "open('/proc/{victim}/oom_score_adj', 'w').write('500')",
    "signal by its descriptor": "libc.syscall(424, libc.syscall(434, {victim}, 0), 19, None, 0)",
    "hard link and mode": "(os.link({file!r}, t + '/h'), os.chmod(t + '/h', 0o777))",
    "rename from outside": "os.rename({file!r}, t + '/r')",
    "rename to outside": "(open(t + '/w', 'w').close(), os.rename(t + '/w', {file!r}))",
    "exchange": "(open(t + '/w', 'w').close(), libc.renameat2(-100, (t + '/w').encode(), -100, "
    "{file!r}.encode(), 2))",
}
"""Python that changes what is not its own."""

READING = (
    "import os, threading\ndef read(fd):\n    try:\n        while os.read(fd, 1 << 16): pass\n"
    "    except OSError: pass\ndef read_all():\n    for fd in range(3, 99):\n"
    "        threading.Thread(target=read, args=[fd], daemon=True).start()\n"
)

DECEITS = {
    "exit": "import sys; sys.exit()",
    "exit at once": "import os; os._exit(0)",
    "exit in a child": "import os\nif os.fork(): os._exit(0)\nraise SystemExit",
    "exit later": "import atexit, os\natexit.register(os._exit, 0)\nraise SystemExit(0)",
    "kill itself": "import os; os.kill(os.getpid(), 9)",
    "print success": "print('passes'); raise SystemExit(0)",
    "raise in a thread": "import threading, os\nthreading.Thread(target=os._exit, args=(0,)).start()",
    "become another program": "import os; os.execv('/bin/true', ['true'])",
    "no code": "# nothing",
    "a plugin": "import os\nos.environ['PYTEST_PLUGINS'] = 'answer'\n"
    "def pytest_pyfunc_call(pyfuncitem): return True",
    "an exception hook": "import sys\nsys.excepthook = lambda *_: print('passes')\nraise ValueError",
    "a file to load": "import os\nfor n in 'conftest', 'sitecustomize', 'usercustomize', 'pytest':\n"
    "    open(f'../tmp/{n}.py', 'w').write('import os; os._exit(0)')\n"
    "os.chdir('../tmp'); os.environ['PYTHONPATH'] = os.environ['PYTHONSTARTUP'] = os.getcwd()",
    "an alarm": "import os, signal\nsignal.signal(14, lambda *_: os._exit(0))\n"
    "signal.setitimer(0, 0.001, 0.001)",
    "an import hook": "import sys\nclass F:\n    def find_spec(self, name, *_): raise SystemExit(0)\n"
    "sys.meta_path.insert(0, F()); sys.modules.pop('json', None)",
    "an audit hook": "import os, sys\n"
    "sys.addaudithook(lambda e, _: os._exit(0) if e in {'compile', 'exec'} else None)",
    "a newline to each descriptor": "import os\nfor d in range(3, 99):\n    try: os.write(d, b'\\n')\n"
    "    except OSError: pass",
    "a thread that reads": READING + "read_all()",
    "a fork that reads": READING + "if not os.fork(): read_all(); threading.Event().wait()",
    "guessing in forks": "import os\ndef works():\n    for n in range(9):\n        p = os.fork()\n"
    "        if not p: return n\n        os.waitpid(p, 0)\n    os._exit(0)",
    "a kind of xfail": "def works():\n    import pytest\n"
    "    raise type('Later', (pytest.xfail.Exception,), {})",
    "a kind of skip": "def works():\n    import pytest\n"
    "    raise type('Later', (pytest.skip.Exception,), {})",
    "a mock that skips": "import unittest.mock\ntry: import pytest\nexcept ImportError: raise SystemExit\n"
    "works = unittest.mock.Mock(side_effect=pytest.skip.Exception)",
    "a false name of a file": "def works():\n    import pytest, sys\n"
    "    exec(compile('pytest.skip()', sys._getframe(1).f_code.co_filename, 'exec'))",
    "a folder with options": "import os\nfor n in 'b', 'check': os.makedirs('../tmp/a/' + n)\n"
    "os.chdir('../tmp/a/b'); open('../check/test.py', 'w').close()\n"
    "open('../check/pytest.ini', 'w').write('[pytest]\\npython_functions = no\\n')",
    "other code of a method": "import unittest\n"
    "unittest.TestCase.assertEqual.__code__ = (lambda *_: None).__code__",
    "another inspect": "import inspect\ninspect.iscoroutinefunction = lambda _: True\n"
    "def works(): pass",
}
"""Python that ends well without doing what the test wants."""

BOMBS = {
    "time": "while True: pass",
    "sleep": "import time; time.sleep(999)",
    "sleep in C": "import ctypes; ctypes.CDLL(None).sleep(999)",
    "deaf": "import signal, time\nfor s in (2, 15, 1): signal.signal(s, signal.SIG_IGN)\n"
    "while True: time.sleep(9)",
    "memory": "x = [0]\nwhile True: x += x",
    "mapped memory": "import mmap\nx = [mmap.mmap(-1, 1 << 26) for _ in range(999)]",
    "memory of a number": "x = 9 ** 9 ** 9",
    "memory of text": "x = 'x' * (1 << 40)",
    "memory of children": "import os\nfor _ in range(9):\n    if os.fork() == 0: break\n"
    "x = bytearray(400 << 20)\nimport time; time.sleep(9); raise SystemExit(1)",
    "output": "while True: print('x' * 9999)",
    "output of a child": "import subprocess; subprocess.run(['yes'])",
    "forks": "import os\nwhile True: os.fork()",
    "children": "import subprocess\nx = [subprocess.Popen(['sleep', '99']) for _ in range(999)]\n"
    "raise SystemExit(1)",
    "threads": "import threading, time\n"
    "while True: threading.Thread(target=time.sleep, args=(99,)).start()",
    "a file": "f = open('../tmp/f', 'wb')\nwhile True: f.write(b'x' * (1 << 20))",
    "files": "n = 0\nwhile True:\n    n += 1\n"
    "    open(f'../tmp/{n}', 'wb').write(b'x' * (1 << 20))",
    "allocated files": "import os\nn = 0\nwhile True:\n    n += 1\n"
    "    os.posix_fallocate(os.open(f'../tmp/{n}', os.O_WRONLY | os.O_CREAT), 0, 1 << 24)",
    "hidden files": "import os\nos.mkdir('../tmp/h', 0o300)\nn = 0\nwhile True:\n    n += 1\n"
    "    open(f'../tmp/h/{n}', 'wb').write(b'x' * (1 << 20))",
    "files after many": "n = 0\nwhile True:\n    n += 1\n"
    "    open(f'../tmp/{n}', 'wb').write(b'x' * (1 << 20) * (n > 19000))",
    "files by threads": "import threading\ndef write(m):\n    n = 0\n    while True:\n        n += 1\n"
    "        open(f'../tmp/{m}-{n}', 'wb').write(x)\nx = b'x' * (1 << 22)\n"
    "for m in range(8): threading.Thread(target=write, args=(m,)).start()",
    "empty files": "n = 0\nwhile True:\n    n += 1\n    open(f'../tmp/{n}', 'wb').close()",
    "folders": "import os\nos.chdir('../tmp')\nwhile True:\n    os.mkdir('d'); os.chdir('d')",
    "deleted files": "import os\nx = []\nwhile True:\n"
    "    x.append(open('../tmp/f', 'wb')); os.unlink('../tmp/f'); x[-1].write(b'x' * (1 << 20))",
    **{
        f"files {way}": hiding_files(way, "../tmp").replace("range(16)", "range(99)")
        for way in HIDING_FILES
    },
    "files in memory": "import os\nx = []\nwhile True:\n"
    "    x.append(os.memfd_create('x')); os.write(x[-1], b'x' * (1 << 20))",
    "pipes": "import fcntl, os\nx = [os.pipe() for _ in range(100)]\nfor r, w in x:\n"
    "    fcntl.fcntl(w, 1031, 1 << 20); os.set_blocking(w, False); os.write(w, b'x' * (1 << 20))\n"
    "raise SystemExit(1)",
    "zombies": "import os\nfor _ in range(9999):\n    if not os.fork(): os._exit(0)",
    "forks in sessions": "import os\nwhile True:\n    if not os.fork():\n"
    "        try: os.setsid()\n        except OSError: pass",
    "threads of children": "import os, threading, time\nfor _ in range(9): os.fork()\n"
    "while True: threading.Thread(target=time.sleep, args=(99,)).start()",
    "open files": "x = [open('/dev/null') for _ in range(99999)]",
    "recursion": "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "pattern": "import re; re.match('(a+)+$', 'a' * 40 + '!')",
    "sort": "x = sorted(range(1 << 27), key=str)",
}  # fmt: skip
"""Python that does not end by itself, or too late."""

START = """
import ctypes, glob, os, platform, shutil, socket, struct, subprocess
def number(x86_64, aarch64): return x86_64 if platform.machine() == "x86_64" else aarch64
def first(attempt, items):
    for item in items:
        try: found = attempt(item)
        except OSError: continue
        if found: return found
    raise SystemExit("none")
t = os.environ.get("TMPDIR", "/tmp")
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
fopen = libc.fopen
fopen.restype = ctypes.c_void_p
keyctl = 250 if platform.machine() == "x86_64" else 219
done = False
"""
"""What every attack can use."""
