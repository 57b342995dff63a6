"""The settings of ``simulate_verdict``, and suites of cases drawn from known pass rates."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

LOOKS = {"U-shaped": 0.5, "60 % fixed": 4.0, "humped": 4.0, "equal": None}
"""How pass rates vary over cases: concentration of a Beta distribution around the mean."""
ONE_BROKEN = -1.0
"""A change that is no mean drop: one case fails for good."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting that many suites are drawn from."""

    kind: str
    cases: int
    runs: int
    baseline_runs: int
    """Of a gate; where runs are added as advised, the most that are."""
    look: str
    rate: float
    change: float
    """Mean lift of a verdict; mean drop of a gate."""
    all_or_nothing: bool = True
    # Not in the seed, which is made of the repr: other cells keep their figures.
    models: int = field(default=1, repr=False)
    correlation: float = field(default=0.0, repr=False)
    """Of the runs of a case in an arm: that of a beta-binomial distribution."""


def cells() -> Iterator[Cell]:
    """List every setting, the slow ones first so that no process ends alone."""
    rates = list(product(LOOKS, (0.4, 0.5, 0.6)))
    for most, (cases, runs), (look, rate), change in product(
        (100, 30), ((20, 3), (10, 5), (3, 5)), product(LOOKS, (0.5,)), (0.0, 0.1, 0.2)
    ):
        yield Cell("advice", cases, runs, most, look, rate, change)
    fixed = ((20, 3), (10, 5), (3, 5), (10, 1))
    for (cases, runs), (look, rate), change in product(fixed, rates, (0.0, 0.2, 0.45)):
        yield Cell("verdict", cases, runs, 0, look, rate, change)
        if change:
            yield Cell("verdict", cases, runs, 0, look, rate, change, all_or_nothing=False)
    good = list(product(("U-shaped", "humped"), (0.8, 0.95)))
    for (cases, runs, baseline_runs), (look, rate), change in product(
        ((20, 3, 10), (10, 5, 10), (10, 5, 5), (10, 3, 10), (10, 1, 10), (3, 5, 5), (10, 1, 1)),
        good,
        (0.0, 0.2, 0.39, ONE_BROKEN),
    ):
        yield Cell("gate", cases, runs, baseline_runs, look, rate, change)
    for models, (look, rate) in product((20, 5, 1), good):
        yield Cell("suite", 10, 3, 10, look, rate, 0.0, models=models)
    for (cases, runs), correlation, (look, rate) in product(fixed, (0.1, 0.3), rates):
        if runs > 1:
            yield Cell("dependent", cases, runs, 0, look, rate, 0.0, correlation=correlation)


def pass_rates(cell: Cell, rng: random.Random) -> list[float]:
    """Draw the true pass rate of every case."""
    rates = []
    for _ in range(cell.cases):
        concentration = LOOKS[cell.look]
        if concentration is None:
            rates.append(cell.rate)
        elif cell.look == "60 % fixed" and rng.random() < 0.6:
            rates.append(float(rng.random() < cell.rate))
        else:
            rates.append(beta(cell.rate, concentration, rng))
    return rates


def improved(rates: list[float], cell: Cell, rng: random.Random) -> list[float]:
    """Make the skill repair failures: all here and none there, or the same share everywhere."""
    share = min(1.0, cell.change / (1 - cell.rate))
    if not share:
        return rates
    return [p + (beta(share, 0.8, rng) if cell.all_or_nothing else share) * (1 - p) for p in rates]


def worsened(rates: list[float], cell: Cell, rng: random.Random) -> list[float]:
    """Make cases lose their passes, all here and none there, or break one case for good."""
    if cell.change == ONE_BROKEN:
        broken = rng.randrange(len(rates))
        return [0.0 if index == broken else p for index, p in enumerate(rates)]
    if not cell.change:
        return rates
    return [p * (1 - beta(cell.change / cell.rate, 0.8, rng)) for p in rates]


def beta(mean: float, concentration: float, rng: random.Random) -> float:
    """Draw from the Beta distribution of this mean."""
    return rng.betavariate(concentration * mean, concentration * (1 - mean)) if mean < 1 else 1.0


def passes(rate: float, runs: int, rng: random.Random) -> int:
    """Run one case and count its passes."""
    return sum(rng.random() < rate for _ in range(runs))
