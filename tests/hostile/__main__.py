"""Run all hostile answers at each level of the sandbox that works here, and print a table.

``python -m tests.hostile [WORD...]``; the suite runs a few answers of each kind.
"""

# ruff: noqa: T201 - it is a script

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self
from unittest import mock

from pytest_upskill.checks.code import Compile
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.sandbox import run
from pytest_upskill.sandbox.limits import Level, entries_below
from pytest_upskill.sandbox.run import Sandbox
from tests.hostile.answers import answers
from tests.hostile.attempt import LIMITS, attack, tight_limits
from tests.hostile.targets import aims
from tests.sandbox_programs import LEVELS

HARD_WALL_S = 20.0
"""Beyond the limit of time, on a machine that does other things too."""


class Peaks(threading.Thread):
    """Watches what the descendants of this process use, while it is entered."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.memory = self.processes = self.disk = 0
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._measured = mock.patch.object(run, "_remove", self._remove)
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


_REMOVE = run._remove


def _on_disk(root: Path) -> int:
    """Return the size of all files below a folder, which may be deeper than `os.walk` can go."""
    size = 0
    for entry in entries_below(str(root)):
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
        "from pytest_upskill.sandbox.run import workspace\n"
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
