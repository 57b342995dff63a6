"""What every row of the benchmark needs: the server, a folder, a pytest run, a row."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from measure import HERE, Backend, Cost, cost, interleaved
from server import Behavior
from suites import write_plain, write_skills

PROBE = """\
import sys


def pytest_unconfigure():
    print("\\nSDKs:", *sorted({"anthropic", "openai", "httpx2"} & sys.modules.keys()))
"""
"""A conftest.py that tells which SDKs a run has imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the result."""

    work: str
    measured: str
    floor: str
    ratio: str
    bar: str
    met: bool

    def cells(self) -> list[str]:
        """List the texts of the line."""
        met = "yes" if self.met else "**no**"
        return [self.work, self.measured, self.floor, self.ratio, self.bar, met]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where everything is run, and how often."""

    backend: Backend
    folder: Path
    repeats: int
    numbers: count[int] = field(default_factory=count)

    def fresh(self) -> Path:
        """Name a folder that is not there yet."""
        return self.folder / str(next(self.numbers))

    def skills(self, trials: int, *, per_skill: int | None = None) -> Path:
        """Write skills for ``trials`` trials into a rootdir of their own."""
        root = self.rootdir()
        write_skills(root, trials, **({} if per_skill is None else {"per_skill": per_skill}))
        return root

    def rootdir(self) -> Path:
        """Make a rootdir without anything to collect."""
        root = self.fresh()
        root.mkdir()
        (root / "pytest.ini").write_text("[pytest]\n")
        (root / "conftest.py").write_text(PROBE)
        return root

    def plain(self, tests: int) -> Path:
        """Write trivial tests into a rootdir of their own."""
        root = self.fresh()
        write_plain(root, tests)
        return root

    def ask(
        self,
        root: Path,
        behavior: Behavior,
        *options: str,
        concurrency: int,
        cache: Path | None = None,
        model: str = "m=openai:model",
    ) -> Cost:
        """Run the skills of ``root``, recording into ``cache`` or a fresh one.

        The server stands for the vendor of the model, unless the model names its URL.
        """
        self.backend.reset(behavior)
        return pytest_run(
            root,
            f"--upskill-models={model}",
            f"--upskill-concurrency={concurrency}",
            f"--upskill-cache-dir={cache or self.fresh()}",
            *options,
            variables=self.backend.vendors,
        )

    def measure(
        self,
        root: Path,
        behavior: Behavior,
        *options: str,
        concurrency: int,
        cache: Path | None = None,
        model: str = "m=openai:model",
        trials: int,
    ) -> Cost:
        """Run as `ask` does, and make sure that all of the trials were measured."""
        run = self.ask(root, behavior, *options, concurrency=concurrency, cache=cache, model=model)
        return healthy(run, trials)

    def warm(
        self, root: Path, trials: int, *, repeats: int | None = None
    ) -> tuple[list[Cost], list[Cost], int]:
        """Replay trials that are recorded, in turn with as many trivial tests.

        Returns:
            What the replays took, what plain pytest took, and the requests of the last replay.
        """
        plain, cache = self.plain(trials), self.fresh()
        again = partial(self.measure, root, Behavior(), concurrency=50, cache=cache, trials=trials)
        again()
        ours, floor = interleaved(repeats or self.repeats, again, partial(pytest_run, plain))
        return ours, floor, self.backend.stats().requests

    def bare(self, sdk: str, behavior: Behavior, *, requests: int, concurrency: int) -> Cost:
        """Run the bare script on the same SDK."""
        self.backend.reset(behavior)
        command = [sys.executable, str(HERE / "floor_sdk.py"), sdk, self.backend.url]
        command += ["--requests", str(requests), "--concurrency", str(concurrency)]
        return cost(command, self.folder)


def pytest_run(
    root: Path,
    *options: str,
    python: str | Path = sys.executable,
    variables: Mapping[str, str] | None = None,
) -> Cost:
    """Run pytest in ``root``."""
    return cost([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options], root, variables)


def passed(run: Cost) -> int:
    """Read how many items passed from pytest's last line."""
    found = re.search(r"(\d+) passed", run.output)
    return int(found[1]) if found else 0


def healthy(run: Cost, trials: int) -> Cost:
    """Return ``run`` if every trial of it was measured and every gate was green.

    Raises:
        RuntimeError: With the output of the run.
    """
    if run.status != 0 or passed(run) < trials:
        raise RuntimeError(f"exit {run.status}: {run.output[-3000:]}")
    return run
