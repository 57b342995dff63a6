"""Measure how often the verdict, the interval, the gate and the early stop are right.

Suites are drawn from known pass rates and judged by ``pytest_upskill.stats``:

    python benchmarks/simulate_verdict.py --suites 4000

The same seed and number of suites print the same tables. ``docs/statistics.md`` quotes them.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import sqrt
from multiprocessing import Pool
from statistics import fmean

from pytest_upskill.stats import (
    CaseCounts,
    early_gate,
    early_verdict,
    last_look_alpha,
    lift,
    lift_test,
    regression_test,
    significant,
)
from pytest_upskill.stats.intervals import score_variance, two_sided_z

LOOKS = {"U-shaped": 0.5, "60 % fixed": 4.0, "humped": 4.0, "equal": None}
"""How pass rates vary over cases: concentration of a Beta distribution around the mean."""

Z95 = two_sided_z(0.95)


ONE_BROKEN = -1.0
"""A change that is no mean drop: one case fails for good."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting that many suites are drawn from."""

    kind: str
    cases: int
    runs: int
    baseline_runs: int
    look: str
    rate: float
    change: float
    """Mean lift of a verdict; mean drop of a gate."""
    all_or_nothing: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What share of a cell's suites ended so."""

    cell: Cell
    significant: float
    covered: float = 0.0
    saved: float = 0.0


def main() -> None:
    """Run every cell and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--suites", type=int, default=4000, help="suites per cell (4000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of every figure (1)")
    parser.add_argument("--processes", type=int, default=2, help="processes (2)")
    args = parser.parse_args()
    jobs = [(cell, args.suites, args.seed) for cell in cells()]
    with Pool(args.processes) as pool:
        shares = pool.starmap(simulate, jobs, chunksize=1)
    print(f"{args.suites} suites per cell, seed {args.seed}")
    print_verdicts([each for each in shares if each.cell.kind == "verdict"], args.suites)
    print_early_stops([each for each in shares if each.cell.kind == "early verdict"])
    print_gates([each for each in shares if each.cell.kind in {"gate", "early gate"}])


def cells() -> Iterator[Cell]:
    """List every setting, the slow ones first so that no process ends alone."""
    rates = list(product(LOOKS, (0.4, 0.5, 0.6)))
    early = ((20, 5), (10, 10), (20, 3), (10, 5), (3, 5))
    for (cases, runs), (look, rate), change in product(early, rates, (0.0, 0.2, 0.45)):
        yield Cell("early verdict", cases, runs, 0, look, rate, change)
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
        if runs == 5:
            yield Cell("early gate", cases, runs, baseline_runs, look, rate, change)


def simulate(cell: Cell, suites: int, seed: int) -> Shares:
    """Draw ``suites`` suites of one cell and judge each."""
    rng = random.Random(f"{seed} {cell}")
    judge = JUDGES[cell.kind]
    if cell.kind == "early verdict":
        suites = max(1, suites // 8)
    outcomes = [judge(cell, rng) for _ in range(suites)]
    found, covered, saved = (fmean(column) for column in zip(*outcomes, strict=True))
    return Shares(cell=cell, significant=found, covered=covered, saved=saved)


def judge_verdict(cell: Cell, rng: random.Random) -> tuple[bool, bool, float]:
    """Say whether the suite is significant, and whether its interval covers the lift."""
    without = pass_rates(cell, rng)
    with_ = improved(without, cell, rng)
    cases = [
        CaseCounts(passes(p1, cell.runs, rng), cell.runs, passes(p0, cell.runs, rng), cell.runs)
        for p1, p0 in zip(with_, without, strict=True)
    ]
    truth = fmean(with_) - fmean(without)
    error = abs((lift(cases) or 0.0) - truth)
    # lift_interval is the set of lifts that pass this; a property test holds it to that.
    covered = error <= Z95 * sqrt(score_variance(cases, truth)) + 1e-12
    return significant(lift_test(cases)), covered, 0.0


def judge_early_verdict(cell: Cell, rng: random.Random) -> tuple[bool, bool, float]:
    """Say whether a look finds an effect, and what share of the runs was saved."""
    without = pass_rates(cell, rng)
    with_ = improved(without, cell, rng)
    hits = [0] * cell.cases
    misses = [0] * cell.cases
    for done in range(1, cell.runs + 1):
        for index in range(cell.cases):
            hits[index] += rng.random() < with_[index]
            misses[index] += rng.random() < without[index]
        cases = [CaseCounts(x1, done, x0, done) for x1, x0 in zip(hits, misses, strict=True)]
        if early_verdict(cases, done, cell.runs):
            return True, True, 1 - done / cell.runs
    return significant(lift_test(cases), last_look_alpha(cell.runs)), True, 0.0


def judge_gate(cell: Cell, rng: random.Random) -> tuple[bool, bool, float]:
    """Say whether the gate fails the pull request."""
    before = pass_rates(cell, rng)
    cases = [
        CaseCounts(
            passes(p1, cell.runs, rng),
            cell.runs,
            passes(p0, cell.baseline_runs, rng),
            cell.baseline_runs,
        )
        for p1, p0 in zip(worsened(before, cell, rng), before, strict=True)
    ]
    return significant(regression_test(cases)) and (lift(cases) or 0.0) < 0, True, 0.0


def judge_early_gate(cell: Cell, rng: random.Random) -> tuple[bool, bool, float]:
    """Say whether the gate fails when it may stop early, and what share of the runs was saved."""
    before = pass_rates(cell, rng)
    now = worsened(before, cell, rng)
    baseline = [passes(p0, cell.baseline_runs, rng) for p0 in before]
    hits = [0] * cell.cases
    for done in range(1, cell.runs + 1):
        hits = [x1 + (rng.random() < p1) for x1, p1 in zip(hits, now, strict=True)]
        cases = [
            CaseCounts(x1, done, x0, cell.baseline_runs)
            for x1, x0 in zip(hits, baseline, strict=True)
        ]
        if decision := early_gate(cases, done, cell.runs):
            return decision == "regressed", True, 1 - done / cell.runs
    failed = significant(regression_test(cases), last_look_alpha(cell.runs))
    return failed and (lift(cases) or 0.0) < 0, True, 0.0


JUDGES: dict[str, Callable[[Cell, random.Random], tuple[bool, bool, float]]] = {
    "verdict": judge_verdict,
    "early verdict": judge_early_verdict,
    "gate": judge_gate,
    "early gate": judge_early_gate,
}


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
    """Let the skill repair failures: all here and none there, or the same share everywhere."""
    share = min(1.0, cell.change / (1 - cell.rate))
    if not share:
        return rates
    return [p + (beta(share, 0.8, rng) if cell.all_or_nothing else share) * (1 - p) for p in rates]


def worsened(rates: list[float], cell: Cell, rng: random.Random) -> list[float]:
    """Let cases lose their passes, all here and none there, or break one case for good."""
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


def print_verdicts(shares: list[Shares], suites: int) -> None:
    """Print type I error, coverage and power per design."""
    error = 100 * sqrt(0.05 * 0.95 / suites)
    print(f"\nVerdict (a cell's Monte Carlo error is {error:.1f} points)")
    print("cases x runs  type I mean  worst   coverage mean  worst   power .2   .45")
    for design, group in by_design(shares):
        null = [each.significant for each in group if not each.cell.change]
        covered = [each.covered for each in group]
        print(
            f"{design:12}  {fmean(null):11.1%}  {max(null):5.1%}   {fmean(covered):13.1%}  "
            f"{min(covered):5.1%}   {power(group, 0.2):8.0%}  {power(group, 0.45):4.0%}"
        )


def print_early_stops(shares: list[Shares]) -> None:
    """Print type I error, power and saved runs per design."""
    print("\nEarly stop of a verdict, an eighth of the suites per cell")
    print("cases x runs  type I mean   lift .2 power  saved   lift .45 power  saved")
    for design, group in by_design(shares):
        print(
            f"{design:12}  {power(group, 0.0):11.1%}   {power(group, 0.2):14.0%}  "
            f"{saved(group, 0.2):5.0%}   {power(group, 0.45):15.0%}  {saved(group, 0.45):5.0%}"
        )


def print_gates(shares: list[Shares]) -> None:
    """Print false alarms, detection and saved runs per design."""
    print("\nGate: cases x (runs, baseline runs)")
    print("design        kind        false alarm mean  worst  -20   -39   one broken  saved, dead")
    for kind in ("gate", "early gate"):
        for design, group in by_design([each for each in shares if each.cell.kind == kind]):
            null = [each.significant for each in group if not each.cell.change]
            print(
                f"{design:12}  {kind:10}  {fmean(null):16.1%}  {max(null):5.1%}  "
                f"{power(group, 0.2):4.0%}  {power(group, 0.39):4.0%}  "
                f"{power(group, ONE_BROKEN):10.0%}  "
                f"{saved(group, 0.0):5.0%}, {saved(group, 0.39):4.0%}"
            )


def by_design(shares: Iterable[Shares]) -> list[tuple[str, list[Shares]]]:
    """Group by cases and runs, small designs first."""
    groups: dict[tuple[int, int, int], list[Shares]] = {}
    for each in shares:
        key = (each.cell.cases, each.cell.runs, each.cell.baseline_runs)
        groups.setdefault(key, []).append(each)
    return [
        (f"{cases}x({runs},{base})" if base else f"{cases}x{runs}", groups[cases, runs, base])
        for cases, runs, base in sorted(groups)
    ]


def power(group: list[Shares], change: float) -> float:
    """Average the share of significant suites over the cells with this change."""
    return fmean(each.significant for each in group if each.cell.change == change)


def saved(group: list[Shares], change: float) -> float:
    """Average the share of runs saved over the cells with this change."""
    return fmean(each.saved for each in group if each.cell.change == change)


if __name__ == "__main__":
    main()
