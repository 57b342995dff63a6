"""Rows of trigger trials: replayed, after a change, and planned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from measure import Cost, cpu, interleaved, megabytes, wall
from server import Behavior
from suites import write_catalogue
from workbench import Bench, Row, healthy, pytest_run

INSTANT = Behavior()


def triggers(bench: Bench) -> Iterator[Row]:
    """Measure queries of many skills: recorded, with one skill changed, and planned."""
    yield _warm(bench)
    yield _changed(bench)
    yield _planned(bench)


def _warm(bench: Bench) -> Row:
    """Compare 600 replayed queries of 60 skills with as many trivial tests."""
    ours, floor, requests = bench.warm(_skills(bench, 60, 600), 600)
    ratio = wall(ours) / wall(floor)
    return Row(
        work="600 queries of 60 skills, from a warm cache",
        measured=f"{wall(ours):.2f} s, {requests} requests",
        floor=f"{wall(floor):.2f} s plain pytest (CPU {cpu(floor):.2f} s)",
        ratio=f"{ratio:.2f} (CPU {cpu(ours) / cpu(floor):.2f})",
        bar="≤ 1.6, 0 requests",
        met=ratio <= 1.6 and not requests,
    )


def _changed(bench: Bench) -> Row:
    """Count the requests after a change of one of 60 skills that are in a catalogue file."""
    root, cache = _skills(bench, 60, 1200), bench.fresh()
    healthy(pytest_run(root, "--upskill-catalogue-update", "skills"), 0)
    skill = root / "skills" / "facts-7" / "SKILL.md"

    def asked() -> int:
        bench.measure(root, INSTANT, "--upskill-runs=3", concurrency=50, cache=cache, trials=1200)
        return int(bench.backend.stats().requests)

    at_first = asked()
    skill.write_text(f"{skill.read_text()}One more line.\n")
    after_body = asked()
    skill.write_text(skill.read_text().replace("description: Use", "description: Always use"))
    after_description = asked()
    return Row(
        work="60 skills, 20 queries each, 3 runs, with a catalogue file: requests at first, after "
        "a change of one body, of one description",
        measured=f"{at_first:,} / {after_body} / {after_description}",
        floor="",
        ratio="",
        bar="3,601 (one is the probe) / 0 / 60",
        met=(at_first, after_body, after_description) == (3601, 0, 60),
    )


def _planned(bench: Bench) -> Row:
    """Plan 3,000 runs that are not recorded, each with a catalogue of 300 skills."""
    root = _skills(bench, 300, 1000)

    def plan() -> Cost:
        options = ("--upskill-runs=3", "--upskill-dry-run")
        run = bench.ask(root, INSTANT, *options, concurrency=50)
        if not re.search(r"3,?000 answers.* 3,?000 to request", run.output):
            raise RuntimeError(f"exit {run.status}: {run.output[-3000:]}")
        return run

    (runs,) = interleaved(bench.repeats, plan)
    return Row(
        work="1,000 queries of 300 skills, 3 runs, planned",
        measured=f"{wall(runs):.1f} s (CPU {cpu(runs):.1f} s), {megabytes(runs):.0f} MB",
        floor="",
        ratio="",
        bar="≤ 10 s, ≤ 300 MB",
        met=wall(runs) <= 10 and megabytes(runs) <= 300,
    )


def _skills(bench: Bench, skills: int, queries: int) -> Path:
    root = bench.rootdir()
    write_catalogue(root, skills, queries)
    return root
