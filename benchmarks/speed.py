"""Measure what pytest-upskill costs beside what it waits for, against floors of the same run.

    python benchmarks/speed.py             every row
    python benchmarks/speed.py warm empty  some of them

Needs the `openai`, `anthropic` and `xdist` extras; compiles need nvcc, and
`agents` needs `claude` and `codex`, as far as they are on PATH. Floors are measured in
turn with what is measured, and every figure is a median. `docs/performance.md` has the method.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

import agents
import choosing
import confining
import fetching
import local
from measure import Backend, serving
from workbench import Bench, Row

ROWS: Mapping[str, Callable[[Bench], Iterator[Row]]] = {
    "fetch-120": fetching.fetch_120,
    "fetch-1200": fetching.fetch_1200,
    "lognormal": fetching.lognormal,
    "xdist": fetching.xdist,
    "faults": fetching.faults,
    "warm": local.warm,
    "growth": local.growth,
    "compiles": local.compiles,
    "triggers": choosing.triggers,
    "agents": agents.boxed,
    "agent-proxy": agents.proxy,
    "agent-replay": agents.replay,
    "agent-memory": agents.memory,
    "sandbox": confining.sandbox,
    # Last: it deletes thousands of files, after which some disks make new ones slowly for minutes.
    "empty": local.empty,
}


def main() -> None:
    """Measure the rows that were asked for and print them as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)} (all)")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each figure (5)")
    args = parser.parse_args()
    if unknown := set(args.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    names = ("pytest", "pytest-xdist", "openai", "anthropic", "pydantic")
    print(f"Python {platform.python_version()}, {len(os.sched_getaffinity(0))} cores,", end=" ")
    print(", ".join(f"{name} {version(name)}" for name in names), end="\n\n")
    print("| work | measured | floor | ratio | target | met |\n|---|---|---|---|---|---|")
    with (
        serving("server.py") as url,
        tempfile.TemporaryDirectory(prefix="upskill-speed-") as folder,
    ):
        bench = Bench(backend=Backend(url), folder=Path(folder), repeats=args.repeats)
        for name in args.rows or ROWS:
            started = time.monotonic()
            for row in ROWS[name](bench):
                print(f"| {' | '.join(row.cells())} |", flush=True)
            print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)


if __name__ == "__main__":
    main()
