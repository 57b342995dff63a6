"""Rows without a network in the way: warm cache, start-up, growth, compilers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from measure import HERE, Cost, cpu, interleaved, megabytes, wall
from server import Behavior
from suites import KERNEL, write_kernels
from workbench import Bench, Row, pytest_run

INSTANT = Behavior()


def warm(bench: Bench) -> Iterator[Row]:
    """Trials whose answers are all recorded."""
    for trials in (120, 10_000):
        repeats = bench.repeats if trials < 1000 else min(3, bench.repeats)
        ours, floor, requests = bench.warm(bench.skills(trials), trials, repeats=repeats)
        sdks = {name for run in ours for name in _sdks(run)}
        work = f"{trials:,} trials from a warm cache"
        ratio = wall(ours) / wall(floor)
        quick = wall(ours) <= 0.5 if trials < 1000 else ratio <= 1.6
        yield Row(
            work=work,
            measured=f"{wall(ours):.2f} s, {requests} requests, SDKs: {', '.join(sdks) or 'none'}",
            floor=f"{wall(floor):.2f} s plain pytest (CPU {cpu(floor):.2f} s)",
            ratio=f"{ratio:.2f} (CPU {cpu(ours) / cpu(floor):.2f})",
            bar=f"{'≤ 0.5 s' if trials < 1000 else '≤ 1.6'}, 0 requests, no SDK",
            met=quick and not requests and not sdks,
        )
        ratio = megabytes(ours) / megabytes(floor)
        yield Row(
            work=f"{work}: memory",
            measured=f"{megabytes(ours):.0f} MB",
            floor=f"{megabytes(floor):.0f} MB plain pytest",
            ratio=f"{ratio:.2f}",
            bar="≤ 2",
            met=ratio <= 2,
        )


def _sdks(run: Cost) -> list[str]:
    """Read what the probe in the rootdir's conftest.py said."""
    line = next(line for line in run.output.splitlines() if line.startswith("SDKs:"))
    return line.split()[1:]


def empty(bench: Bench) -> Iterator[Row]:
    """A run that has nothing to do with skills, in two fresh environments."""
    root = bench.fresh()
    root.mkdir()
    with_, without = (_environment(bench.fresh(), *what) for what in ((str(HERE.parent),), ()))
    ours, floor = interleaved(
        5 * bench.repeats,
        partial(pytest_run, root, python=with_),
        partial(pytest_run, root, python=without),
    )
    more = 1000 * (wall(ours) - wall(floor))
    yield Row(
        work="an empty pytest run, plugin and core dependencies installed",
        measured=f"{1000 * wall(ours):.0f} ms",
        floor=f"{1000 * wall(floor):.0f} ms without",
        ratio=f"+ {more:.1f} ms",
        bar="≤ + 15 ms",
        met=more <= 15,
    )


def _environment(folder: Path, *packages: str) -> Path:
    """Make a virtual environment with pytest and ``packages``; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "pytest", *packages]
    subprocess.run(install, check=True)
    return python


def growth(bench: Bench) -> Iterator[Row]:
    """CPU and memory from 100 to 10,000 trials: asked for, and from a warm cache."""
    sizes = (100, 300, 1000, 3000, 10_000)
    names = ", ".join(f"{size:,}" for size in sizes)
    curves: dict[str, list[list[Cost]]] = {"asked": [], "warm": []}
    for trials in sizes:
        root = bench.skills(trials)
        asked, warm = [], []
        for _ in range(min(3, bench.repeats)):
            cache = bench.fresh()
            run = partial(bench.measure, root, INSTANT, concurrency=50, cache=cache, trials=trials)
            asked.append(run())
            warm.append(run())
        curves["asked"].append(asked)
        curves["warm"].append(warm)
    for name, curve in curves.items():
        small, middle, large = curve[0], curve[2], curve[4]
        early = (cpu(middle) - cpu(small)) / 900
        late = (cpu(large) - cpu(middle)) / 9000
        heavier = (megabytes(large) - megabytes(middle)) / 9
        yield Row(
            work=f"growth of CPU and memory, {name}: {names} trials",
            measured=" / ".join(f"{cpu(runs):.2f} s, {megabytes(runs):.0f} MB" for runs in curve),
            floor=f"{1000 * early:.2f} ms a trial from 100 to 1,000",
            ratio=f"{late / early:.2f} ({1000 * late:.2f} ms, {heavier:.1f} MB per 1,000)",
            bar="linear: ≤ 1.15",
            met=late / early <= 1.15,
        )


def compiles(bench: Bench) -> Iterator[Row]:
    """40 CUDA kernels through the sandbox against nvcc alone, two at a time."""
    if shutil.which("nvcc") is None:
        print("no nvcc on PATH: the row about compiles is left out", file=sys.stderr)
        return
    kernels = 40
    root, cache = bench.rootdir(), bench.fresh()
    write_kernels(root, kernels)
    # Both runs of a trial get the same answer: each source is to be built once.
    again = partial(
        bench.measure,
        root,
        INSTANT,
        "--upskill-runs=2",
        "-pcacheprovider",
        concurrency=20,
        cache=cache,
        trials=2 * kernels,
    )

    def built_anew(*folders: Path) -> Cost:
        for folder in (root / ".pytest_cache", *folders):
            shutil.rmtree(folder, ignore_errors=True)
        return again()

    asked, recorded, floor = interleaved(
        bench.repeats,
        partial(built_anew, cache),
        built_anew,
        partial(_nvcc, kernels),
    )
    yield from _compile_rows(asked, recorded, floor, again())


def _compile_rows(
    asked: list[Cost], recorded: list[Cost], floor: list[Cost], second: Cost
) -> Iterator[Row]:
    """Compare compiles with bare nvcc, and say what they take once they are remembered."""
    for what, runs in (("answers asked for", asked), ("answers recorded", recorded)):
        yield Row(
            work=f"40 CUDA compiles, each source twice, {what}",
            measured=f"{wall(runs):.2f} s",
            floor=f"{wall(floor):.2f} s bare nvcc, two at a time",
            ratio=f"{wall(runs) / wall(floor):.2f}",
            bar="≤ 1.15",
            met=wall(runs) <= 1.15 * wall(floor),
        )
    yield Row(
        work="the same again",
        measured=f"{second.wall:.2f} s",
        floor="",
        ratio="",
        bar="0 s of compiling (≤ 1 s whole run)",
        met=second.wall <= 1,
    )


def _nvcc(kernels: int) -> Cost:
    """Compile as many sources by nvcc alone, as many at a time as there are cores."""
    with tempfile.TemporaryDirectory() as folder:

        def build(number: int) -> None:
            source = Path(folder, f"{number}.cu")
            source.write_text(KERNEL.format(number=number))
            command = ["nvcc", "-cubin", "-arch=sm_90", source.name, "-o", f"{number}.cubin"]
            subprocess.run(command, cwd=folder, check=True)

        started = time.perf_counter()
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            list(threads.map(build, range(kernels)))
        taken = time.perf_counter() - started
    return Cost(wall=taken, cpu=0.0, megabytes=0.0, status=0, output="")
