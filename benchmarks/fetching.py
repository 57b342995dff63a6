"""Rows about fetching: latency, concurrency, pytest-xdist, faults."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from statistics import median

from measure import Cost, cpu, interleaved, list_schedule, megabytes, wall
from server import Behavior
from workbench import Bench, Row, passed, pytest_run


def fetch_120(bench: Bench) -> Iterator[Row]:
    """120 completions of 300 ms, with both SDKs; pytest's own time is no cost of this plugin."""
    behavior, trials = Behavior(latency=0.3), 120
    root, empty = bench.skills(trials), bench.plain(trials)
    url = bench.backend.url
    for sdk, model in (
        ("openai", f"m=model@{url}/v1"),
        ("openai", "m=openai:model"),
        ("anthropic", "m=anthropic:model"),
    ):
        for width in (20, 50, 120):
            ours, bare, plain = interleaved(
                bench.repeats,
                partial(
                    bench.measure,
                    root,
                    behavior,
                    concurrency=width,
                    model=model,
                    trials=trials,
                ),
                partial(bench.bare, sdk, behavior, requests=trials, concurrency=width),
                partial(pytest_run, empty),
            )
            beyond = wall(ours) - math.ceil(trials / width) * behavior.latency
            script, both = wall(bare), wall(bare) + wall(plain)
            for floor, name in (
                (script, "bare script"),
                (both, "bare script, and plain pytest with as many tests"),
            ):
                ratio = wall(ours) / floor
                yield Row(
                    work=f"120 x 300 ms, {model.replace(url, 'URL')}, concurrency {width}",
                    measured=f"{wall(ours):.2f} s (ideal + {beyond:.2f} s; CPU {cpu(ours):.2f} s)",
                    floor=f"{floor:.2f} s {name}",
                    ratio=f"{ratio:.2f}",
                    bar="≤ 1.15",
                    met=ratio <= 1.15,
                )


def fetch_1200(bench: Bench) -> Iterator[Row]:
    """1,200 completions of 50 ms: time, CPU, memory."""
    behavior, few, many = Behavior(latency=0.05), 120, 1200
    roots = {trials: bench.skills(trials) for trials in (few, many)}

    def ours(trials: int, width: int) -> Cost:
        return bench.measure(roots[trials], behavior, concurrency=width, trials=trials)

    def bare(trials: int, width: int) -> Cost:
        return bench.bare("openai", behavior, requests=trials, concurrency=width)

    for width in (50, 100):
        short, long, short_floor, floor = interleaved(
            bench.repeats,
            *(partial(run, trials, width) for run in (ours, bare) for trials in (few, many)),
        )
        yield from _rows_1200(width, short, long, short_floor, floor)


def _rows_1200(
    width: int, short: list[Cost], long: list[Cost], short_floor: list[Cost], floor: list[Cost]
) -> Iterator[Row]:
    """Compare 1,200 completions with the bare script: time, CPU of a further one, memory."""
    work = f"1,200 x 50 ms, openai, concurrency {width}"
    ratio = wall(long) / wall(floor)
    yield Row(
        work=work,
        measured=f"{wall(long):.2f} s (CPU {cpu(long):.2f} s)",
        floor=f"{wall(floor):.2f} s bare script (CPU {cpu(floor):.2f} s)",
        ratio=f"{ratio:.2f}",
        bar="≤ 1.3",
        met=ratio <= 1.3,
    )
    # The slope: what starting up takes, the rows before and "warm" tell.
    mine, theirs = (
        1000 * (cpu(large) - cpu(small)) / (1200 - 120)
        for small, large in ((short, long), (short_floor, floor))
    )
    yield Row(
        work=f"{work}: CPU of a further completion",
        measured=f"{mine:.2f} ms",
        floor=f"{theirs:.2f} ms bare script",
        ratio=f"+ {mine - theirs:.2f} ms",
        bar="≤ + 1 ms",
        met=mine - theirs <= 1,
    )
    yield Row(
        work=f"{work}: memory",
        measured=f"{megabytes(long):.0f} MB",
        floor=f"{megabytes(floor):.0f} MB bare script",
        ratio=f"{megabytes(long) / megabytes(floor):.2f}",
        bar="≤ 90 MB",
        met=megabytes(long) <= 90,
    )


def lognormal(bench: Bench) -> Iterator[Row]:
    """400 completions of unequal latency against the list schedule of the same latencies."""
    behavior, trials, width = Behavior(latency=2.0, sigma=0.5), 400, 50
    root = bench.skills(trials)
    walls, spans, ideals = [], [], []
    for _ in range(min(3, bench.repeats)):
        run = bench.measure(root, behavior, concurrency=width, trials=trials)
        stats = bench.backend.stats()
        ideals.append(list_schedule(stats.latencies, width))
        walls.append(run.wall)
        spans.append(stats.last - stats.first)
    for what, found in (("whole run", walls), ("first request to last answer", spans)):
        ratio = median(found) / median(ideals)
        yield Row(
            work=f"400 x lognormal 2 s, concurrency {width}: {what}",
            measured=f"{median(found):.2f} s",
            floor=f"{median(ideals):.2f} s ideal list schedule",
            ratio=f"{ratio:.3f}",
            bar="≤ 1.05",
            met=ratio <= 1.05,
        )


def xdist(bench: Bench) -> Iterator[Row]:
    """The requests' span under two workers against one process."""
    for what, trials, behavior, width in (
        ("120 x 300 ms", 120, Behavior(latency=0.3), 20),
        ("400 x lognormal 2 s", 400, Behavior(latency=2.0, sigma=0.5), 50),
        ("1,200 x 50 ms", 1200, Behavior(latency=0.05), 50),
    ):
        root = bench.skills(trials)
        spans: dict[str, list[float]] = {"-n2": [], "-n0": []}
        duplicates = 0
        for _ in range(bench.repeats):
            for workers, found in spans.items():
                bench.measure(root, behavior, workers, concurrency=width, trials=trials)
                stats = bench.backend.stats()
                found.append(stats.last - stats.first)
                duplicates += stats.duplicates
        two, one = median(spans["-n2"]), median(spans["-n0"])
        yield Row(
            work=f"{what}, concurrency {width}, -n 2: span",
            measured=f"{two:.2f} s, {duplicates} duplicates",
            floor=f"{one:.2f} s in one process",
            ratio=f"{two / one:.2f}",
            bar="≤ 1.1, 0 duplicates",
            met=two / one <= 1.1 and duplicates == 0,
        )


def faults(bench: Bench) -> Iterator[Row]:
    """Refusals and broken replies, each run with a seed of its own."""
    trials, width = 120, 20
    root = bench.skills(trials)
    for too_many, broken, bar in ((0.05, 0.02, 3.0), (0.2, 0.2, math.inf)):
        faulty: list[Cost] = []
        faultless: list[Cost] = []
        refused = lost = 0
        for seed in range(1, bench.repeats + 1):
            behavior = Behavior(latency=0.05, too_many=too_many, broken=broken, seed=seed)
            faulty.append(bench.ask(root, behavior, concurrency=width))
            stats = bench.backend.stats()
            refused += stats.refused
            lost += trials - min(stats.answered, passed(faulty[-1]))
            faultless.append(
                bench.measure(root, Behavior(latency=0.05), concurrency=width, trials=trials)
            )
        later = wall(faulty) - wall(faultless)
        green = all(run.status == 0 for run in faulty)
        yield Row(
            work=f"120 x 50 ms with {too_many:.0%} 429 and {broken:.0%} 500",
            measured=f"{wall(faulty):.2f} s, {refused} refusals, {lost} lost",
            floor=f"{wall(faultless):.2f} s fault-free",
            ratio=f"+ {later:.2f} s",
            bar="none lost" + ("" if bar == math.inf else f", ≤ + {bar:g} s"),
            met=green and lost == 0 and later <= bar,
        )
