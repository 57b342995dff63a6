"""Hostile answers at every level of the sandbox: what they steal, break, leave behind and use up.

``python -m tests.hostile`` runs all of them at each level that works here and prints a table; the
suite runs a few of each kind. What they try is in `tests.attacks`.
"""

# ruff: noqa: T201 - it is a script

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
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from unittest import mock

from pytest_upskill.checks import Compile, Run
from pytest_upskill.compile import CannotCompile, Compilers
from pytest_upskill.sandbox import workspace
from pytest_upskill.sandbox.levels import Level
from pytest_upskill.sandbox.run import Limits, Sandbox
from tests.attacks import SECRET, Answer, answers
from tests.sandbox_programs import LEVELS

LIMITS = Limits(
    wall_s=2, cpu_s=2, memory_bytes=512 << 20, file_bytes=16 << 20, folder_bytes=64 << 20,
    processes=32,
)  # fmt: skip
_ADD_KEY = (248 if platform.machine() == "x86_64" else 217,)
HARD_WALL_S = 20.0
"""Beyond the limit of time, on a machine that does other things too."""


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
        descriptor = os.open(folder / "secret", os.O_RDONLY)
        stack.callback(os.close, descriptor)
        shared = Path("/dev/shm", folder.name)
        with suppress(OSError):
            shared.write_text(SECRET)
        stack.callback(shared.unlink, missing_ok=True)
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
            "descriptor": descriptor,
            "shared": shared.name,
            "handle": _handle(folder / "secret"),
            "temporary": tempfile.gettempdir(),
            **_serve(stack, folder),
        }


def _handle(file: Path) -> bytes:
    """Return what `open_by_handle_at` needs to open a file; nonsense if its disk has no handles."""
    handle, mount = ctypes.create_string_buffer(b"\x80", 136), ctypes.c_int()
    ctypes.CDLL(None).name_to_handle_at(-100, bytes(file), handle, ctypes.byref(mount), 0)
    return handle.raw


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
    process = Path(f"/proc/{targets['victim']}")
    victim = (process / "stat").read_text().rpartition(")")[2].split()
    choice = (process / "oom_score_adj").read_text()
    processors = os.sched_getaffinity(int(str(targets["victim"])))
    return files, victim[0] in {"T", "Z"}, victim[16], choice, processors


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
    """Lower the limits of programs, so that bombs end soon."""
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
        self._measured = mock.patch.object(workspace, "_remove", self._remove)
        self._measured.start()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        self._measured.stop()

    def run(self) -> None:
        """Sample ten times a second."""
        while not self._over.wait(0.1):
            sizes = list(_sizes(os.getpid()))
            self.memory = max([self.memory, *sizes])
            self.processes = max(self.processes, len(sizes))

    def _remove(self, root: Path) -> None:
        """Measure what a program has left before it is removed."""
        self.disk = max(self.disk, _on_disk(root))
        _REMOVE(root)


_REMOVE = workspace._remove


def _on_disk(root: Path) -> int:
    """Return the size of all files below a folder, which may be deeper than `os.walk` can go."""
    size = 0
    for entry in workspace.entries_below(str(root)):
        with suppress(OSError):
            size += entry.stat(follow_symlinks=False).st_blocks * 512
    return size


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
                f"{peaks.processes} processes of {LIMITS.processes} and the sandbox's own, "
                f"{peaks.disk >> 20} MiB on disk of {LIMITS.folder_bytes >> 20}"
            )
            for title, group in groups.items():
                for each in group:
                    print(f"  {title}: {each.answer.name} ({each.seconds:.1f} s)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
