"""Hostile answers at every level of the sandbox: what they steal, break, leave behind and use up.

``python -m tests.hostile`` runs all of them at each level that works here and prints a table; the
suite runs a few of each kind. Attacks are made from a table: what is tried, in each language that
can try it. Nothing here is harmful if it succeeds: the secrets, files and processes are its own.
"""

# Attacks read best on lines of their own.
# ruff: noqa: T201, E501, ISC004, Q003

from __future__ import annotations

import ctypes
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self
from unittest import mock

from pytest_upskill.checks import Compile, Run, Sandboxed
from pytest_upskill.compile import CannotCompile, Compilers
from pytest_upskill.sandbox.levels import Level
from pytest_upskill.sandbox.run import Limits, Sandbox
from tests.sandbox_programs import LEVELS

Kind = Literal["honest", "theft", "harm", "deceit", "bomb"]
SECRET = "sk_planted_7d1f"
LIMITS = Limits(
    wall_s=2, cpu_s=2, memory_bytes=512 << 20, file_bytes=16 << 20, folder_bytes=64 << 20,
    processes=32,
)  # fmt: skip
_ADD_KEY = (248 if platform.machine() == "x86_64" else 217,)
HARD_WALL_S = 20.0
"""Beyond the limit of time, on a machine that does other things too."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, and what should come of it."""

    name: str
    kind: Kind
    check: Sandboxed
    code: str

    @property
    def text(self) -> str:
        """What a model would reply."""
        return f"```{self.check.language}\n{self.code}\n```\n"


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
}
"""Python that changes what is not its own."""

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
    "empty files": "n = 0\nwhile True:\n    n += 1\n    open(f'../tmp/{n}', 'wb').close()",
    "folders": "import os\nos.chdir('../tmp')\nwhile True:\n    os.mkdir('d'); os.chdir('d')",
    "open files": "x = [open('/dev/null') for _ in range(99999)]",
    "recursion": "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "pattern": "import re; re.match('(a+)+$', 'a' * 40 + '!')",
    "sort": "x = sorted(range(1 << 27), key=str)",
}  # fmt: skip
"""Python that does not end by itself, or too late."""

INCLUDES = {
    "include": '#include "{secret}"',
    "include in angle brackets": "#include <{secret}>",
    "include by macro": '#define P "{secret}"\n#include P',
    "include from elsewhere": '#line 1 "/usr/include/x.h"\n#include "{secret}"',
    "include by a link": '#include "/proc/self/root{secret}"',
    "include in a type": 'typedef struct\n#include "{word}"\n T;\nint f(T *p) {{ return p; }}',
    "include in a message": '_Static_assert(0,\n#include "{quoted}"\n);',
    "include in an initialiser": 'char s[] = {{\n#include "{word}"\n}};',
    "assembler": 'asm(".include \\"{secret}\\"");',
    "assembler in a function": 'void f(void) {{ asm(".include \\"{secret}\\""); }}',
    "bytes": 'asm(".incbin \\"{secret}\\"");\n#error seen',
    "embed": 'char s[] = {{\n#embed "{secret}"\n}};',
    "environment": 'asm(".include \\"/proc/self/environ\\"");',
    "environment of pytest": 'asm(".include \\"/proc/{pid}/environ\\"");\n#error seen',
    "dependency": '#pragma GCC dependency "{secret}"\n#error seen',
}
"""C, C++ and CUDA that would quote a file."""

BUILD_BOMBS = {
    "templates": "template <int N> struct F {{ enum {{ v = F<N - 1>::v }}; }};\nint x = F<9999>::v;",
    "constexpr": "constexpr int f(int n) {{ return n < 2 ? n : f(n - 1) + f(n - 2); }} int a[f(60)];",
    "include itself": "#include __FILE__\n#include __FILE__",
    "parentheses": "int x = " + "(" * 100_000 + ";",
    "errors": "x;\n" * 50_000,
    "comment": "/*" * 250_000,
    "macros": "#define A(x) x x x x x x x x\n#define B(x) A(A(A(A(A(A(A(A(A(x)))))))))\n"
    "int x = 0 B(+1);",
    "object": "char x[1 << 30] = {{1}};",
    "assembler": 'asm(".rept 1000000000\\n.long 1\\n.endr");',
    "space": 'asm(".space 1 << 40, 1");',
    "long line": "#error " + "x" * 500_000,
}
"""C, C++ and CUDA that compilers do not finish."""

PARSE_BOMBS = {
    "parentheses": "(" * 100_000,
    "number": "x = " + "9" * 100_000,
    "nothing": "# nothing",
    "indents": "".join(" " * depth + "if 1:\n" for depth in range(150)),
    "operators": "x = " + "-" * 100_000 + "1",
}
"""Python that is hard to parse, and wrong."""

HONEST: Mapping[str, tuple[str, ...]] = {
    "run": (
        "import tempfile, shutil, os\nwith tempfile.TemporaryDirectory() as t:\n"
        "    os.mkdir(t + '/a'); open(t + '/a/b', 'w').close(); shutil.copytree(t + '/a', t + '/c')",
        "import asyncio\nassert asyncio.run(asyncio.sleep(0, 7)) == 7",
        "import subprocess\nassert subprocess.check_output(['echo', 'x']) == b'x\\n'",
        "import threading\nt = threading.Thread(target=print); t.start(); t.join()",
        "import json, decimal, datetime, re, random, uuid, logging, sqlite3, zlib",
        "import os\npid = os.fork()\nif not pid: os._exit(3)\nassert os.waitpid(pid, 0)[1] == 768",
        "import socket\na, b = socket.socketpair(); a.sendall(b'x'); assert b.recv(1) == b'x'",
        "import os\nopen('../tmp/f', 'w').write('x'); os.chmod('../tmp/f', 0o600); os.utime('../tmp/f')",
        "import signal, time\nsignal.signal(14, lambda *_: None); signal.alarm(1); signal.pause()",
        "import mmap, pickle, csv, io, pathlib\nassert pathlib.Path('.').exists()",
    ),
    "c": ("#include <stdio.h>\nint main(void) { return puts(\"x\"); }", "int x;"),
    "cpp": ("#include <vector>\n#include <string>\nstd::vector<std::string> x;", "int x;"),
    "cuda": ("#include <cuda_fp16.h>\n__global__ void k(half *x) { x[0] = 1; }",),
    "python": ("import os\ndef f(x: int) -> int:\n    return x", "print(1)"),
}  # fmt: skip

_START = """
import ctypes, glob, os, platform, shutil, socket, subprocess
t = os.environ.get("TMPDIR", "/tmp")
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
fopen = libc.fopen
fopen.restype = ctypes.c_void_p
keyctl = 250 if platform.machine() == "x86_64" else 219
done = False
"""


def answers(targets: Mapping[str, object], languages: Iterable[str]) -> Iterator[Answer]:
    """Make all answers, as attacks times the languages that they are possible in.

    Args:
        targets: What the attacks are aimed at, as `targets` makes them.
        languages: Those of C, C++ and CUDA that can be compiled here.
    """
    yield from _executed(targets)
    for name, code in PARSE_BOMBS.items():
        yield Answer(f"parse {name}", "bomb", Compile(language="python"), code)
    for language in ("python", *languages):
        for code in HONEST[language]:
            yield Answer(f"{language} honestly", "honest", Compile(language=language), code)
    for language in languages:
        yield from _compiled(language, targets)


def _executed(targets: Mapping[str, object]) -> Iterator[Answer]:
    stolen = Run(language="python", code=f"assert {SECRET!r} in str(loot)")
    for name, attack in THEFTS.items():
        yield Answer(f"steal {name}", "theft", stolen, f"{_START}loot = {_aim(attack, targets)}")
    done = Run(language="python", code="assert done")
    for name, attack in HARMS.items():
        yield Answer(f"harm {name}", "harm", done, f"{_START}{_aim(attack, targets)}\ndone = True")
    works = Run(language="python", code="assert works() == 3")
    for name, code in DECEITS.items():
        yield Answer(f"deceive by {name}", "deceit", works, code)
    for name, code in BOMBS.items():
        yield Answer(f"bomb of {name}", "bomb", works, code)
    for code in HONEST["run"]:
        honest = Run(language="python", code="assert honest")
        yield Answer("run honestly", "honest", honest, f"{code}\nhonest = True")


def _compiled(language: str, targets: Mapping[str, object]) -> Iterator[Answer]:
    check = Compile(language=language)
    kernel = "\n__global__ void k() {{}}" if language == "cuda" else ""
    for name, code in INCLUDES.items():
        yield Answer(f"{language} {name}", "theft", check, _aim(code + kernel, targets))
    for name, code in BUILD_BOMBS.items():
        # CUDA is slow, and C has neither templates nor constexpr.
        if language == "cpp" or (language == "c" and name not in {"templates", "constexpr"}):
            yield Answer(f"{language} bomb of {name}", "bomb", check, _aim(code, targets))


def _aim(attack: str, targets: Mapping[str, object]) -> str:
    return attack.format_map(targets)


FILES = {
    "secret": f"{SECRET} = 1;\n{SECRET}\n",
    "word": SECRET,
    "quoted": f'"{SECRET}"',
    "file": "untouched",
}


def _write_files(folder: Path) -> None:
    """Make the files again as they were: an attack may have changed or removed them."""
    for name, content in FILES.items():
        (folder / name).write_text(content)
        (folder / name).chmod(0o600)
        os.utime(folder / name, (2, 2))


@contextmanager
def aims() -> Iterator[dict[str, object]]:
    """Make what the attacks are aimed at."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hostile-")))
        _write_files(folder)
        with suppress(OSError):
            os.setxattr(folder / "secret", "user.secret", SECRET.encode())
        stack.enter_context(mock.patch.dict(os.environ, {"OPENAI_API_KEY": SECRET}))
        # A process whose environment and command line hold the secret, as those of others may.
        command = [sys.executable, "-c", "import time; time.sleep(3600)", SECRET]
        victim = stack.enter_context(subprocess.Popen(command, start_new_session=True))
        stack.callback(victim.kill)
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_void_p
        memory = libc.shmget(0, 4096, 0o1600)
        ctypes.memmove(libc.shmat(memory, None, 0), SECRET.encode() + b"\0", len(SECRET) + 1)
        stack.callback(libc.shmctl, memory, 0, None)
        libc.syscall(*_ADD_KEY, b"user", b"upskill-hostile", SECRET.encode(), len(SECRET), -3)
        yield {
            **{name: str(folder / name) for name in FILES},
            "folder": str(folder),
            "marker": SECRET,
            "pid": os.getpid(),
            "victim": victim.pid,
            "memory": memory,
            **_serve(stack, folder),
        }


def _serve(stack: ExitStack, folder: Path) -> dict[str, object]:
    """Serve the secret on sockets of each kind."""
    datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    datagrams.bind(str(folder / "datagrams"))
    streams = {
        "port": socket.create_server(("127.0.0.1", 0)),
        "unix": socket.socket(socket.AF_UNIX),
        "abstract": socket.socket(socket.AF_UNIX),
    }
    streams["unix"].bind(str(folder / "unix"))
    streams["abstract"].bind(f"\0{folder.name}")
    for server in streams.values():
        stack.enter_context(server).listen()
        stack.callback(server.shutdown, socket.SHUT_RDWR)  # ends the thread's accept()
        threading.Thread(target=_tell, args=(server,), daemon=True).start()
    return {
        "datagrams": str(folder / "datagrams"),
        "port": streams["port"].getsockname()[1],
        "unix": str(folder / "unix"),
        "abstract": f"\0{folder.name}",
    }


def _tell(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(SECRET.encode())


def state(targets: Mapping[str, object]) -> object:
    """Return what must be the same after an attack as before."""
    folder = Path(str(targets["folder"]))
    files = [
        (path.name, path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in sorted(folder.iterdir())
    ]
    victim = Path(f"/proc/{targets['victim']}/stat").read_text().rpartition(")")[2].split()
    return files, victim[0] in {"T", "Z"}, victim[16]


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one answer."""

    answer: Answer
    passed: bool | None
    """None where it is undecided."""
    stolen: bool
    harmed: bool
    seconds: float

    @property
    def wrong(self) -> bool:
        """Whether the verdict is wrong; of what steals or harms, only the damage counts."""
        if self.answer.kind in {"theft", "harm"}:
            return False
        return self.passed is not (self.answer.kind == "honest")


def attack(compilers: Compilers, answer: Answer, targets: Mapping[str, object]) -> Finding:
    """Decide about an answer and look at the damage."""
    _write_files(Path(str(targets["folder"])))
    before = state(targets)
    start = time.monotonic()
    passed: bool | None
    try:
        result = compilers.decide(answer.check, answer.text)[0]
        passed, text = result.passed, result.message + result.detail
    except CannotCompile as error:
        passed, text = None, str(error)
    executed = isinstance(answer.check, Run)
    # The test of executed code names the secret: only passing it shows that the answer has it.
    stolen = answer.kind == "theft" and (passed is True if executed else SECRET in text)
    return Finding(
        answer=answer,
        passed=passed,
        stolen=stolen,
        harmed=state(targets) != before,
        seconds=time.monotonic() - start,
    )


@contextmanager
def tight_limits() -> Iterator[None]:
    """Give programs less, for bombs to end soon."""
    with ExitStack() as stack:
        compile_limits = replace(LIMITS, wall_s=10, cpu_s=10, memory_bytes=2 << 30)
        for module, limits in (("python_runner", LIMITS), ("command", compile_limits)):
            stack.enter_context(mock.patch(f"pytest_upskill.compile.{module}.LIMITS", limits))
        yield


class Peaks(threading.Thread):
    """Watches what the descendants of this process use, while it is entered."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.memory = self.processes = self.disk = 0
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        """Look five times a second."""
        while not self._over.wait(0.2):
            sizes = list(_sizes(os.getpid()))
            self.memory = max([self.memory, *sizes])
            self.processes = max(self.processes, len(sizes))
            files = Path(tempfile.gettempdir()).glob("upskill-*/tmp/*")
            self.disk = max(self.disk, sum(map(_on_disk, files)))


def _on_disk(file: Path) -> int:
    with suppress(OSError):
        return file.lstat().st_blocks * 512
    return 0


def _sizes(root: int) -> Iterator[int]:
    """Yield how much memory each descendant of a process has, in bytes."""
    children: dict[int, list[tuple[int, int]]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            about = int(file.parent.name), int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
            children.setdefault(int(fields[1]), []).append(about)
    pending = children.get(root, [])
    while pending:
        process, size = pending.pop()
        yield size
        pending += children.get(process, [])


def languages() -> list[str]:
    """Name those of C, C++ and CUDA that can be compiled here."""
    compilers = Compilers("limits")
    return [
        language
        for language in ("c", "cpp", "cuda")
        if compilers.missing(Compile(language=language)) is None
    ]


def survivors(level: Level) -> int:
    """Kill a process that runs answers; count what is left of them five seconds later."""
    marker = f"97.{time.time_ns() % 10**9}"
    script = f"sleep {marker} & (sleep {marker} &) ; (setsid sleep {marker} &) ; sleep {marker}"
    program = (
        "import sys\nfrom pytest_upskill.sandbox.run import Sandbox\n"
        "from pytest_upskill.sandbox.workspace import workspace\n"
        "with workspace() as home: Sandbox(sys.argv[1]).run(['/bin/sh', '-c', sys.argv[2]], home)"
    )
    with subprocess.Popen([sys.executable, "-c", program, level, script]) as process:
        deadline = time.monotonic() + HARD_WALL_S
        while _sleeping(marker) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    time.sleep(5)
    Sandbox(level)  # removes the folder that the other process has left
    return _sleeping(marker)


def _sleeping(marker: str) -> int:
    count = 0
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            count += process.read_bytes().split(b"\0")[:2] == [b"sleep", marker.encode()]
    return count


def main(names: list[str]) -> None:
    """Print what came of all answers at each level, or of those with a name that holds a word."""
    with aims() as targets, tight_limits():
        every = [
            each
            for each in answers(targets, languages())
            if not names or any(name in each.name for name in names)
        ]
        print(f"{len(every)} answers: {dict(Counter(each.kind for each in every))}")
        print("level     wrong verdicts  undecided  thefts  harms  late  survivors")
        for level in LEVELS:
            compilers = Compilers(level)
            with Peaks() as peaks:
                found = [attack(compilers, each, targets) for each in every]
            groups = {
                "wrong": [each for each in found if each.wrong],
                "undecided": [each for each in found if each.passed is None],
                "stolen": [each for each in found if each.stolen],
                "harmed": [each for each in found if each.harmed],
                "late": [each for each in found if each.seconds > HARD_WALL_S],
            }
            counts = [len(group) for group in groups.values()]
            print(
                "{:9} {:14}  {:9}  {:6}  {:5}  {:4}  {:9}".format(level, *counts, survivors(level))
            )
            print(
                f"  at most {peaks.memory >> 20} MiB in a process of {LIMITS.memory_bytes >> 20}, "
                f"{peaks.processes} processes, {peaks.disk >> 20} MiB on disk of "
                f"{LIMITS.folder_bytes >> 20}"
            )
            for title, group in groups.items():
                for each in group:
                    print(f"  {title}: {each.answer.name} ({each.seconds:.1f} s)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
