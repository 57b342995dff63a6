"""What the sandbox adds to compilers, at each level, against the same command without any."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from suites import KERNEL
from workbench import Bench, Row

from pytest_upskill.sandbox.limits import Level
from pytest_upskill.sandbox.run import Sandbox, SandboxError, workspace

CPP = """\
#include <algorithm>
#include <map>
#include <string>
#include <vector>
std::map<std::string, std::vector<int>> sorted(std::map<std::string, std::vector<int>> all) {
    for (auto &[name, one] : all) std::sort(one.begin(), one.end());
    return all;
}
"""
PYTHON = "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')"
BAR = 1.10


def sandbox(bench: Bench) -> Iterator[Row]:
    """One compile by nvcc, g++ and Python, in turn without a sandbox and at each level."""
    sources = {
        "nvcc": (KERNEL.format(number=1), ".cu", ["-cubin", "-arch=sm_90", "-o", "../tmp/object"]),
        "g++": (CPP, ".cpp", ["-std=c++17", "-c", "-o", "../tmp/object"]),
        "python": ("def f(x):\n    return x + 1\n" * 200, ".py", ["-I", "-S", "-c", PYTHON]),
    }
    boxes = list(_boxes())
    for name, (text, suffix, options) in sources.items():
        program = sys.executable if name == "python" else _found(name)
        if program is None:
            print(f"no {name} on PATH: its rows are left out", file=sys.stderr)
            continue
        command = [str(Path(program).resolve()), *options]
        times: dict[Sandbox | None, list[float]] = {box: [] for box in (None, *boxes)}
        for turn in range(-1, 4 * bench.repeats):
            for box, taken in times.items():
                seconds = _compile(box, command, f"answer{suffix}", text)
                if turn >= 0:  # the first fills caches
                    taken.append(seconds)
        floor = statistics.median(times[None])
        for box in boxes:
            median = statistics.median(times[box])
            yield Row(
                work=f"one compile by {name} at {box.level}",
                measured=f"{1000 * median:.0f} ms",
                floor=f"{1000 * floor:.0f} ms without a sandbox",
                ratio=f"{median / floor:.2f} (+ {1000 * (median - floor):.0f} ms)",
                bar=f"≤ {BAR:.2f}",
                met=median <= BAR * floor,
            )


def _found(name: str) -> str | None:
    """Find a compiler; for nvcc the program itself, as a script may stand for it on PATH."""
    found = shutil.which(name)
    real = Path("/usr/local/cuda/bin", name)
    return str(real) if name == "nvcc" and real.exists() else found


def _boxes() -> Iterator[Sandbox]:
    levels: tuple[Level, ...] = ("bwrap", "landlock")
    for level in levels:
        try:
            yield Sandbox(level)
        except SandboxError:
            print(f"no {level} on this machine: its rows are left out", file=sys.stderr)


def _compile(box: Sandbox | None, command: Sequence[str], name: str, text: str) -> float:
    """Return the seconds that a command takes on a file, without the making of its folder."""
    with workspace() as home:
        line = [*command, home.write(f"src/{name}", text)]
        if box is None:
            started = time.perf_counter()
            subprocess.run(line, cwd=home.root / "cwd", check=True, capture_output=True)
            return time.perf_counter() - started
        readable = [Path(command[0]).parent.parent, Path(sys.base_prefix)]
        started = time.perf_counter()
        outcome = box.run(line, home, readable=readable, path=[Path(command[0]).parent])
        taken = time.perf_counter() - started
    if not outcome.succeeded:
        raise RuntimeError(f"{box.level}: {outcome.ended}: {outcome.output}")
    return taken
