"""Run a command or several in turn, and tell what each took."""

from __future__ import annotations

import heapq
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

from server import Behavior

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a command took, the processes it waited for included."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds, user and system."""
    megabytes: float
    """Peak resident memory of the largest process."""
    status: int
    output: str


class Backend:
    """A running `server`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.vendors = {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
        }
        """Variables of the SDKs that put it in the place of their vendors' hosts."""

    def reset(self, behavior: Behavior) -> None:
        """Set the behavior and zero the counters."""
        with urlopen(f"{self.url}/reset", json.dumps(asdict(behavior)).encode()) as reply:
            reply.read()

    def stats(self) -> Any:
        """Read the counters, an attribute each."""
        with urlopen(f"{self.url}/stats") as reply:
            return SimpleNamespace(**json.load(reply))


@contextmanager
def serving(script: str, *options: str) -> Iterator[str]:
    """Run one of the servers here in a process of its own; yield its URL."""
    command = [sys.executable, str(HERE / script), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def cost(
    command: Sequence[str | Path], cwd: Path, variables: Mapping[str, str] | None = None
) -> Cost:
    """Run ``command`` to its end.

    Args:
        command: Program and arguments.
        cwd: Where.
        variables: Environment variables to add.
    """
    # What a user's shell has not: options of another pytest, a ban on compiled modules.
    foreign = ("PYTEST", "PYTHON", "COV", "GITHUB")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**inherited, **(variables or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return Cost(
            wall=wall,
            cpu=usage.ru_utime + usage.ru_stime,
            megabytes=usage.ru_maxrss * 1024 / 1e6,
            status=process.returncode,
            output=output.read(),
        )


def interleaved(repeats: int, *jobs: Callable[[], Cost]) -> list[list[Cost]]:
    """Run the jobs in turn, ``repeats`` times, so that all meet the same load."""
    rounds = [[job() for job in jobs] for _ in range(repeats)]
    return [list(costs) for costs in zip(*rounds, strict=True)]


def wall(costs: Iterable[Cost]) -> float:
    """Return the median of the seconds."""
    return median(cost.wall for cost in costs)


def cpu(costs: Iterable[Cost]) -> float:
    """Return the median of the CPU seconds."""
    return median(cost.cpu for cost in costs)


def megabytes(costs: Iterable[Cost]) -> float:
    """Return the median of the peaks."""
    return median(cost.megabytes for cost in costs)


def list_schedule(durations: Iterable[float], slots: int) -> float:
    """Return how long jobs take that start in order, each as soon as one of ``slots`` is free."""
    free = [0.0] * slots
    for duration in durations:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)
