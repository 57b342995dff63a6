"""Measure how often the verdict, the interval and the gate are right.

Suites are drawn from known pass rates and judged by ``pytest_upskill.stats``:

    python benchmarks/simulate_verdict.py --full

The same seed and number of suites print the same tables. ``docs/statistics.md`` quotes them.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt
from multiprocessing import Pool
from statistics import fmean

from drawn_suites import ONE_BROKEN, Cell, beta, cells, improved, pass_rates, passes, worsened

from pytest_upskill.figures.comparison import ComparedCase, Comparison, adjust
from pytest_upskill.stats import (
    CaseCounts,
    lift,
    lift_test,
    look_alpha,
    regression_test,
    runs_needed,
    significant,
    verdict,
)
from pytest_upskill.stats.intervals import score_variance, two_sided_z

FEW, MANY = 400, 4000
"""Suites of a cell by default, and with ``--full``."""

Z95 = two_sided_z(0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What share of a cell's suites ended so."""

    cell: Cell
    significant: float
    covered: float
    further: float
    """The mean number of looks at advice; of a suite, the share that was left open."""


def main() -> None:
    """Run every cell and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help=f"{MANY} suites per cell")
    parser.add_argument("--suites", type=int, default=FEW, help=f"suites per cell ({FEW})")
    parser.add_argument("--seed", type=int, default=1, help="seed of every figure (1)")
    parser.add_argument("--processes", type=int, default=2, help="processes (2)")
    args = parser.parse_args()
    suites = MANY if args.full else args.suites
    jobs = [(cell, suites, args.seed) for cell in cells()]
    with Pool(args.processes) as pool:
        shares = pool.starmap(simulate, jobs, chunksize=1)
    print(f"{suites} suites per cell, seed {args.seed}")
    print_verdicts([each for each in shares if each.cell.kind == "verdict"], suites)
    print_advice([each for each in shares if each.cell.kind == "advice"])
    print_gates([each for each in shares if each.cell.kind == "gate"])
    print_suites([each for each in shares if each.cell.kind == "suite"])
    print_dependent([each for each in shares if each.cell.kind == "dependent"])


def simulate(cell: Cell, suites: int, seed: int) -> Shares:
    """Draw ``suites`` suites of one cell and judge each."""
    rng = random.Random(f"{seed} {cell}")
    judge = JUDGES[cell.kind]
    if cell.kind == "advice":
        suites = max(1, suites // 8)
    elif cell.kind == "suite":
        suites = max(1, suites // cell.models)
    outcomes = [judge(cell, rng) for _ in range(suites)]
    found, covered, further = (fmean(column) for column in zip(*outcomes, strict=True))
    return Shares(cell=cell, significant=found, covered=covered, further=further)


def judge_verdict(cell: Cell, rng: random.Random) -> tuple[bool, bool, float]:
    """Return whether the suite is significant, and whether its interval covers the lift."""
    without = pass_rates(cell, rng)
    with_ = improved(without, cell, rng)
    cases = [
        CaseCounts(passes(p1, cell.runs, rng), cell.runs, passes(p0, cell.runs, rng), cell.runs)
        for p1, p0 in zip(with_, without, strict=True)
    ]
    truth = fmean(with_) - fmean(without)
    error = abs((lift(cases) or 0.0) - truth)
    # lift_interval is the set of lifts that pass this; a property test holds it to that.
    covered = error <= Z95 * sqrt(score_variance(Counter(cases), truth)) + 1e-12
    return significant(lift_test(cases), look_alpha(1)), covered, 0.0


def judge_advice(cell: Cell, rng: random.Random) -> tuple[bool, bool, float]:
    """Return whether any look finds an effect, and the number of looks.

    Runs are added as advised, up to ``cell.baseline_runs``.
    """
    without = pass_rates(cell, rng)
    with_ = improved(without, cell, rng)
    counts = [(0, 0)] * cell.cases
    look, done, planned = 0, 0, cell.runs
    while planned and planned <= cell.baseline_runs:
        more, done, look = planned - done, planned, look + 1
        counts = [
            (x1 + passes(p1, more, rng), x0 + passes(p0, more, rng))
            for (x1, x0), p1, p0 in zip(counts, with_, without, strict=True)
        ]
        cases = [CaseCounts(x1, done, x0, done) for x1, x0 in counts]
        found = verdict(cases, look_alpha(look))
        if found != "too few runs":
            return found != "no effect", True, look
        needed = runs_needed(cases, look_alpha(look + 1))
        planned = max(needed, done + 1) if needed else 0
    return False, True, look


def judge_gate(cell: Cell, rng: random.Random) -> tuple[bool, bool, float]:
    """Return whether the gate fails the pull request."""
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


def judge_suite(cell: Cell, rng: random.Random) -> tuple[bool, bool, float]:
    """Return whether any model is red, and whether none is but one is left open, by missing runs.

    ``cell.models`` models are compared with their baselines; each lacks a run of its first case.
    """
    suite = list(adjust([compared(cell, rng) for _ in range(cell.models)]))
    red = any(each.regressed for each in suite)
    is_open = any(each.undecided for each in suite)
    return red, True, float(is_open and not red)


def compared(cell: Cell, rng: random.Random) -> Comparison:
    """Compare an unchanged skill on one model with its baseline."""
    cases = []
    for number, rate in enumerate(pass_rates(cell, rng)):
        runs = cell.runs - (number == 0)
        now = passes(rate, runs, rng)
        then = (passes(rate, cell.baseline_runs, rng), cell.baseline_runs)
        case = ComparedCase(
            id=str(number),
            counts=CaseCounts(now, runs, *then),
            if_for=CaseCounts(now + cell.runs - runs, cell.runs, *then),
            if_against=CaseCounts(now, cell.runs, *then),
        )
        cases.append(case)
    return Comparison(compared_with="baseline", cases=tuple(cases))


def judge_dependent(cell: Cell, rng: random.Random) -> tuple[bool, bool, float]:
    """Return whether the suite is significant though no case differs: runs of a case are alike."""
    cases = []
    for rate in pass_rates(cell, rng):
        one, other = (
            passes(beta(rate, (1 - cell.correlation) / cell.correlation, rng), cell.runs, rng)
            if 0 < rate < 1
            else round(rate) * cell.runs
            for _ in range(2)
        )
        cases.append(CaseCounts(one, cell.runs, other, cell.runs))
    return significant(lift_test(cases), look_alpha(1)), True, 0.0


JUDGES: dict[str, Callable[[Cell, random.Random], tuple[bool, float, float]]] = {
    "verdict": judge_verdict,
    "advice": judge_advice,
    "gate": judge_gate,
    "suite": judge_suite,
    "dependent": judge_dependent,
}


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


def print_advice(shares: list[Shares]) -> None:
    """Print how often anybody who adds runs as advised is told of an effect."""
    print("\nRuns added as advised: cases x (runs, most runs), an eighth of the suites per cell")
    print("design        ever helps or hurts without effect, mean  worst  looks   +10   +20")
    for design, group in by_design(shares):
        null = [each for each in group if not each.cell.change]
        ever = [each.significant for each in null]
        print(
            f"{design:12}  {fmean(ever):41.1%}  {max(ever):5.1%}  "
            f"{fmean(each.further for each in null):5.2f}  {power(group, 0.1):4.0%}  "
            f"{power(group, 0.2):4.0%}"
        )


def print_gates(shares: list[Shares]) -> None:
    """Print false alarms and detection per design."""
    print("\nGate: cases x (runs, baseline runs)")
    print("design        false alarm mean  worst  -20   -39   one broken")
    for design, group in by_design(shares):
        null = [each.significant for each in group if not each.cell.change]
        print(
            f"{design:12}  {fmean(null):16.1%}  {max(null):5.1%}  {power(group, 0.2):4.0%}  "
            f"{power(group, 0.39):4.0%}  {power(group, ONE_BROKEN):10.0%}"
        )


def print_suites(shares: list[Shares]) -> None:
    """Print how often an unchanged skill has a red or an open gate on any of several models."""
    print("\nGates of an unchanged skill, 10x(3,10), one missing run per model")
    print("models  red mean  worst   open mean  worst")
    for models in sorted({each.cell.models for each in shares}):
        group = [each for each in shares if each.cell.models == models]
        red, left_open = [each.significant for each in group], [each.further for each in group]
        print(
            f"{models:6}  {fmean(red):8.1%}  {max(red):5.1%}   {fmean(left_open):9.1%}  "
            f"{max(left_open):5.1%}"
        )


def print_dependent(shares: list[Shares]) -> None:
    """Print type I error where the runs of a case in an arm are correlated."""
    print("\nVerdict where the runs of a case in an arm are correlated")
    print("cases x runs  correlation  type I mean  worst")
    for design, group in by_design(shares):
        for correlation in sorted({each.cell.correlation for each in group}):
            null = [e.significant for e in group if e.cell.correlation == correlation]
            print(f"{design:12}  {correlation:11.1f}  {fmean(null):11.1%}  {max(null):5.1%}")


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


if __name__ == "__main__":
    main()
