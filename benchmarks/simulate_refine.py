"""Measure how often ``pytest-upskill refine`` believes a version that is no better.

Skills, teachers and students with known pass rates are drawn, and sessions are decided by the rules
of ``pytest_upskill.teacher``: the best of four candidates by 12 train cases with 3 runs each, then
one look at 8 held-out cases with 10 fresh runs of both versions. For descriptions, the best of four
by 30 train queries with 3 runs each, then one look at 20 held-out queries with 3 fresh runs; half
of the queries are for the skill, and a right choice is a pass.

    python benchmarks/simulate_refine.py            # a minute
    python benchmarks/simulate_refine.py --full     # the figures of docs/teacher.md

The same seed and size print the same table.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import Pool
from multiprocessing.pool import Pool as PoolType

from pytest_upskill.stats import CaseCounts
from pytest_upskill.teacher.acceptance import decide_acceptance
from pytest_upskill.teacher.confirmation import QUERY_RUNS
from pytest_upskill.teacher.search import TRAIN_RUNS

TRAIN, HELD_OUT, RUNS, CANDIDATES = 12, 8, 10, 4
GAIN = 0.3

SPREADS = {"U-shaped": 0.5, "humped": 4.0, "literal": 0.0}
"""Concentration of the Beta distribution of pass rates; 0: a check looks for a fact that is there
or not."""

TOLD, GUESSED = 0.95, 0.05
"""Pass rates of a literal check of a fact that the skill holds, and of one that it lacks."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    teacher: str
    """``null`` changes nothing, ``memorises`` helps train cases only, ``true +30`` all; of
    descriptions, ``restores`` brings a lost "when" back, and ``loses`` drops it."""
    spread: str
    looks: int
    students: int = 1


def draw(chance: random.Random, spread: str, cases: int, rate: float = 0.6) -> list[float]:
    """Draw the pass rates of cases with the old version."""
    if spread == "literal":
        known = round(cases * rate)
        return [TOLD] * known + [GUESSED] * (cases - known)
    concentration = SPREADS[spread]
    return [
        chance.betavariate(rate * concentration, (1 - rate) * concentration) for _ in range(cases)
    ]


def improved_rates(rates: Sequence[float], gain: float) -> list[float]:
    """Return pass rates whose mean is higher by ``gain``, or 1 where that is impossible."""
    room = 1 - sum(rates) / len(rates)
    share = min(1.0, gain / room) if room > 0 else 0.0
    return [rate + (1 - rate) * share for rate in rates]


def draw_passes(chance: random.Random, rate: float, runs: int) -> int:
    """Draw the number of passes of some runs."""
    return sum(chance.random() < rate for _ in range(runs))


def better(rates: Sequence[float], spread: str) -> list[float]:
    """Return pass rates that are higher by `GAIN` in the mean."""
    if spread != "literal":
        return improved_rates(rates, GAIN)
    mended, lacking = list(rates), GAIN * len(rates)
    for index, rate in enumerate(rates):
        if rate == GUESSED and lacking > 0:
            mended[index] = rate + min(1.0, lacking / (TOLD - GUESSED)) * (TOLD - GUESSED)
            lacking -= TOLD - GUESSED
    return mended


def session(chance: random.Random, setting: Setting, holdout: Sequence[float], look: int) -> bool:
    """Return whether a session accepts a version."""
    train = draw(chance, setting.spread, TRAIN)
    gains = setting.teacher != "null"
    new_train = better(train, setting.spread) if gains else train
    current = sum(draw_passes(chance, rate, TRAIN_RUNS) for rate in train)
    best = max(
        sum(draw_passes(chance, rate, TRAIN_RUNS) for rate in new_train) for _ in range(CANDIDATES)
    )
    if best <= current:
        return False
    new = better(holdout, setting.spread) if setting.teacher == "true +30" else holdout
    students = {
        str(student): [
            CaseCounts(
                draw_passes(chance, after, RUNS), RUNS, draw_passes(chance, before, RUNS), RUNS
            )
            for after, before in zip(new, holdout, strict=True)
        ]
        for student in range(setting.students)
    }
    return decide_acceptance(students, look=look).accepted


def history(arguments: tuple[Setting, int]) -> bool:
    """Return whether any of a setting's sessions on one hold-out accepts; a true gain, the last."""
    setting, seed = arguments
    chance = random.Random(f"{setting} {seed}")
    holdout = draw(chance, setting.spread, HELD_OUT)
    looks = range(1, setting.looks + 1)
    if setting.teacher == "true +30":
        # What its level leaves of the power, after looks that accepted nothing.
        return session(chance, setting, holdout, setting.looks)
    return any(session(chance, setting, holdout, look) for look in looks)


QUERIES, HELD_OUT_QUERIES = 30, 20
RECALL, LOST_RECALL, RIGHTLY_NOT = 0.9, 0.4, 0.95
"""Mean rates of right choices: of queries for the skill, also without a "when", and of others."""


def choices(chance: random.Random, spread: str, queries: int, recall: float) -> list[float]:
    """Draw how often the skill is rightly chosen, and rightly not."""
    half = queries // 2
    return [*draw(chance, spread, half, recall), *draw(chance, spread, half, RIGHTLY_NOT)]


def description(arguments: tuple[Setting, int]) -> bool:
    """Return whether any session on one hold-out of queries accepts a description.

    The teacher writes one that is no other, one that restores a lost "when", or one that loses it;
    that is found if it is not accepted and called worse.
    """
    setting, seed = arguments
    chance = random.Random(f"{setting} {seed}")
    before = LOST_RECALL if setting.teacher == "restores" else RECALL
    after = {"null": before, "restores": RECALL, "loses": LOST_RECALL}[setting.teacher]
    level = SPREADS[setting.spread]
    train, holdout = (
        [
            (improved(chance, rate, after, before, level) if index < n // 2 else rate, rate)
            for index, rate in enumerate(choices(chance, setting.spread, n, before))
        ]
        for n in (QUERIES, HELD_OUT_QUERIES)
    )
    for look in range(1, setting.looks + 1):
        current = sum(draw_passes(chance, old, TRAIN_RUNS) for _, old in train)
        best = max(
            sum(draw_passes(chance, new, TRAIN_RUNS) for new, _ in train) for _ in range(CANDIDATES)
        )
        if best <= current and setting.teacher != "loses":
            continue
        counts = [
            CaseCounts(
                draw_passes(chance, new, QUERY_RUNS),
                QUERY_RUNS,
                draw_passes(chance, old, QUERY_RUNS),
                QUERY_RUNS,
            )
            for new, old in holdout
        ]
        decided = decide_acceptance({"s": counts}, look=look)
        if decided.worse if setting.teacher == "loses" else decided.accepted:
            return True
    return False


def improved(
    chance: random.Random, rate: float, after: float, before: float, concentration: float
) -> float:
    """Return the rate of a query with another description, whose mean rate is different."""
    if after == before:
        return rate
    return chance.betavariate(after * concentration, (1 - after) * concentration)


def description_settings() -> list[Setting]:
    """Return the rows about descriptions."""
    spreads = ("U-shaped", "humped")
    return [
        *(Setting("null", spread, looks) for spread in spreads for looks in (1, 5, 20)),
        *(Setting(teacher, spread, 1) for teacher in ("restores", "loses") for spread in spreads),
    ]


def settings() -> list[Setting]:
    """Return the rows of the table."""
    return [
        *(Setting("null", spread, looks) for spread in SPREADS for looks in (1, 5, 20)),
        Setting("null", "U-shaped", 1, students=3),
        *(Setting("memorises", spread, looks) for spread in SPREADS for looks in (1, 20)),
        *(Setting("true +30", spread, looks) for spread in SPREADS for looks in (1, 3)),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--sessions", type=int, default=200, help="histories of each row")
    parser.add_argument("--full", action="store_true", help="2000 histories of each row")
    options = parser.parse_args()
    count = 2000 if options.full else options.sessions
    print(f"{TRAIN} train cases x {TRAIN_RUNS}, {HELD_OUT} held out x {RUNS}, {count} histories")
    with Pool() as pool:
        print_table(pool, history, settings(), count)
        print(
            f"\n{QUERIES} train queries x {TRAIN_RUNS}, {HELD_OUT_QUERIES} held out x {QUERY_RUNS}"
        )
        print_table(pool, description, description_settings(), count)


def print_table(
    pool: PoolType,
    simulated: Callable[[tuple[Setting, int]], bool],
    rows: Sequence[Setting],
    count: int,
) -> None:
    """Print how often each row's histories accept a version, or find that it is worse."""
    print(f"{'teacher':10}  {'pass rates':10}  {'looks':>5}  {'students':>8}  accepted")
    for setting in rows:
        jobs = [(setting, seed) for seed in range(count)]
        accepted = sum(pool.imap_unordered(simulated, jobs, chunksize=25))
        print(
            f"{setting.teacher:10}  {setting.spread:10}  {setting.looks:5}  "
            f"{setting.students:8}  {accepted / count:8.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
