"""Measure how often the intervals of pass@k and pass^k cover the true rates of the same cases.

    python benchmarks/simulate_at_k.py

Suites are drawn as in ``simulate_verdict``. The same seed prints the same table, which
``docs/statistics.md`` quotes.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from statistics import fmean

from drawn_suites import LOOKS, Cell, pass_rates, passes

from pytest_upskill.stats import Estimate, pass_at_k, pass_hat_k

DESIGNS = ((5, 3, 3), (10, 3, 2), (10, 5, 3), (20, 5, 5), (20, 10, 3), (40, 5, 2))
"""Cases, runs and k."""
RATES = (0.2, 0.5, 0.8, 0.95)

Measure = Callable[[Sequence[tuple[int, int]], int], Estimate | None]
FIGURES: dict[str, tuple[Measure, Callable[[float, int], float]]] = {
    "pass@k": (pass_at_k, lambda rate, k: 1 - (1 - rate) ** k),
    "pass^k": (pass_hat_k, lambda rate, k: rate**k),
}


def main() -> None:
    """Print the coverage and the bias of both figures for each design."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--suites", type=int, default=2000, help="suites per setting (2000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of every figure (1)")
    args = parser.parse_args()
    print(
        f"{args.suites} suites in each of {len(LOOKS) * len(RATES)} populations, seed {args.seed}"
    )
    print("cases x runs, k | figure | covers, mean | worst | best | bias, largest")
    for cases, runs, k in DESIGNS:
        populations = [
            Cell("at k", cases, runs, 0, look, rate, 0.0) for look, rate in product(LOOKS, RATES)
        ]
        for name in FIGURES:
            results = [simulate(cell, k, name, args.suites, args.seed) for cell in populations]
            covered, bias = zip(*results, strict=True)
            print(
                f"{cases} x {runs}, {k} | {name} | {fmean(covered):.1%} | {min(covered):.1%} | "
                f"{max(covered):.1%} | {max(map(abs, bias)):.1%}"
            )


def simulate(cell: Cell, k: int, name: str, suites: int, seed: int) -> tuple[float, float]:
    """Return the share of intervals that cover the truth, and the mean error of the estimate."""
    measure, truth_of = FIGURES[name]
    rng = random.Random(f"{seed} {cell} {k} {name}")
    covered, errors = 0, []

    @cache
    def measured(counts: tuple[int, ...]) -> Estimate | None:
        return measure([(count, cell.runs) for count in counts], k)

    for _ in range(suites):
        rates = pass_rates(cell, rng)
        truth = fmean(truth_of(rate, k) for rate in rates)
        found = measured(tuple(sorted(passes(rate, cell.runs, rng) for rate in rates)))
        assert found is not None
        covered += found.low <= truth + 1e-12 and truth - 1e-12 <= found.high
        errors.append(found.estimate - truth)
    return covered / suites, fmean(errors)


if __name__ == "__main__":
    main()
