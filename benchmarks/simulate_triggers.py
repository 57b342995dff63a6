"""Measure how often the interval of a recall covers the truth, and how often the gate is red.

Queries are drawn from a population in which each has a probability of its own to trigger the skill:

    python benchmarks/simulate_triggers.py
    python benchmarks/simulate_triggers.py --full

The same seed prints the same tables. ``docs/statistics.md`` quotes those of ``--full``.
"""

from __future__ import annotations

import argparse
import random
from itertools import product
from typing import NamedTuple

from pytest_upskill.stats import CaseCounts, regression_test, significant
from pytest_upskill.stats.triggers import QueryCounts, query_interval

ALIKE, MIXED, SURE = 50.0, 1.0, 0.05
"""Concentrations of the Beta distribution of a query's probability around the mean."""


class Setting(NamedTuple):
    """What sets of queries are drawn from."""

    queries: int
    runs: int
    rate: float
    """Mean probability of a query to trigger the skill."""
    spread: float


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="1000 sets of queries, not 200")
    parser.add_argument("--seed", type=int, default=1, help="seed of every figure (1)")
    args = parser.parse_args()
    sets = 1000 if args.full else 200
    coverage(sets, args.seed)
    gate(sets, args.seed)


def coverage(sets: int, seed: int) -> None:
    """Print the share of the 95 % intervals that cover the recall of the population."""
    print("queries x runs | covers, mean | worst")
    for queries, runs in product((10, 20, 40), (1, 3)):
        shares = [
            _covered(sets, seed, Setting(queries, runs, rate, spread))
            for rate, spread in product((0.5, 0.8, 0.9), (ALIKE, MIXED, SURE))
        ]
        mean = sum(shares) / len(shares)
        print(f"{queries} x {runs} | {mean:.1%} | {min(shares):.1%}")


def gate(sets: int, seed: int) -> None:
    """Print how often the gate is red: for a change without effect, and for a lower recall."""
    print("queries x runs | red without effect, worst | red if recall falls by 20, by 40")
    for queries, runs in product((10, 20, 40), (1, 3)):
        false = max(
            _red(sets, seed, Setting(queries, runs, rate, spread), 0.0)
            for rate, spread in product((0.7, 0.9), (ALIKE, MIXED, SURE))
        )
        mixed = Setting(queries, runs, 0.9, MIXED)
        found = [_red(sets, seed, mixed, drop) for drop in (0.2, 0.4)]
        print(f"{queries} x {runs} | {false:.1%} | {found[0]:.0%}, {found[1]:.0%}")


def _covered(sets: int, seed: int, setting: Setting) -> float:
    chance = random.Random(f"{seed} {setting}")
    covered = 0
    for _ in range(sets):
        rates = (_drawn(chance, setting) for _ in range(setting.queries))
        runs = setting.runs
        interval = query_interval([QueryCounts(_hits(chance, rate, runs), runs) for rate in rates])
        covered += interval is not None and interval.low <= setting.rate <= interval.high
    return covered / sets


def _red(sets: int, seed: int, setting: Setting, drop: float) -> float:
    chance = random.Random(f"{seed} {setting} {drop}")
    red, runs = 0, setting.runs
    for _ in range(sets):
        cases = []
        for _ in range(setting.queries):
            then = _drawn(chance, setting)
            now = then * (1 - drop / setting.rate)
            cases.append(
                CaseCounts(_hits(chance, now, runs), runs, _hits(chance, then, runs), runs)
            )
        red += significant(regression_test(cases))
    return red / sets


def _drawn(chance: random.Random, setting: Setting) -> float:
    rate, spread = setting.rate, setting.spread
    return chance.betavariate(rate * spread, (1 - rate) * spread)


def _hits(chance: random.Random, rate: float, runs: int) -> int:
    return sum(chance.random() < rate for _ in range(runs))


if __name__ == "__main__":
    main()
