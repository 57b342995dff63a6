"""Measure what an early stop finds, and how many runs it takes, beside other rules on equal suites.

    python benchmarks/simulate_early_stop.py
    python benchmarks/simulate_early_stop.py --full

The tests of many suites are computed at once, with NumPy; a sample of them is compared with those
of ``pytest_upskill.stats``. The same seed prints the same tables, which ``docs/statistics.md``
quotes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product
from math import comb, sqrt

import numpy as np
from drawn_suites import LOOKS
from numpy.typing import NDArray
from scipy.stats import norm  # type: ignore[import-untyped]  # ships no types

from pytest_upskill.stats import CaseCounts, early_alpha, early_verdict, look_alpha

FEW, MANY = 1000, 10_000
"""Suites of a setting by default, and with ``--full``."""
CHUNK = 1000
"""Suites that are computed at once."""
DESIGNS = ((3, 5), (10, 5), (10, 10), (20, 3), (20, 5), (20, 10))
POPULATIONS = tuple(product(LOOKS, (0.4, 0.5, 0.6)))
LEVEL = look_alpha(1)
FUTILE, LIFT_SD, MIN_RUNS = 0.02, 0.1, 5
ROUNDING = 1e-12

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What suites are drawn from."""

    cases: int
    rounds: int
    look: str
    """How the pass rates without the skill vary over cases, see `drawn_suites`."""
    rate: float
    """Their mean."""
    change: float
    """The mean lift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites:
    """Suites of one setting, after each round: arrays of suites x rounds."""

    cases: int
    p: Floats
    lift: Floats
    variance: Floats
    """Of the lift, if there is no effect."""
    truth: Floats
    """The true lift of each suite."""
    passes: NDArray[np.int64]
    """Passes with and without the skill, by suite, round, arm and case."""

    @property
    def rounds(self) -> int:
        """Number of planned rounds."""
        return int(self.p.shape[1])

    def after(self, suite: int, done: int) -> list[CaseCounts]:
        """Return the counts of one suite after some rounds."""
        with_, without = self.passes[suite, done - 1]
        return [CaseCounts(int(a), done, int(b), done) for a, b in zip(with_, without, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When to stop: at these levels after each round, and if an effect is too unlikely."""

    levels: tuple[float, ...]
    futile: float = 0.0
    """Probability of an effect under which it stops, from half of the rounds on."""


def main() -> None:
    """Print a table of each lift."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help=f"{MANY} suites per setting")
    parser.add_argument("--suites", type=int, default=FEW, help=f"suites per setting ({FEW})")
    parser.add_argument("--seed", type=int, default=1, help="seed of every figure (1)")
    args = parser.parse_args()
    suites = MANY if args.full else args.suites
    print(f"{suites} suites in each of {len(POPULATIONS)} populations, seed {args.seed}")
    for change in (0.0, 0.2, 0.45):
        print_table(change, suites, args.seed)


def print_table(change: float, suites: int, seed: int) -> None:
    """Print what each rule finds, and how many of the runs it takes."""
    print(
        f"\ntrue lift {change:.0%} | rule | finds, mean (beside Haybittle-Peto) | worst | "
        "runs (share of Haybittle-Peto's) | bias"
    )
    for cases, rounds in DESIGNS:
        found: dict[str, list[NDArray[np.bool_]]] = {}
        runs: dict[str, list[float]] = {}
        bias: dict[str, list[float]] = {}
        for look, rate in POPULATIONS:
            setting = Setting(cases=cases, rounds=rounds, look=look, rate=rate, change=change)
            drawn = draw(setting, suites, seed)
            for name, rule in rules(rounds).items():
                finds, done, lift = stop(drawn, rule)
                found.setdefault(name, []).append(finds)
                runs.setdefault(name, []).append(float(done.mean()) / rounds)
                bias.setdefault(name, []).append(float((lift - drawn.truth).mean()))
            check_sample(drawn)
        for name, each in found.items():
            beside = np.concatenate(each) * 1.0 - np.concatenate(found["Haybittle-Peto"])
            share = sum(runs[name]) / sum(runs["Haybittle-Peto"])
            print(
                f"{cases} x {rounds} | {name} | {np.concatenate(each).mean():.1%} "
                f"({beside.mean() * 100:+.2f} +- {beside.std() * 100 / sqrt(len(beside)):.2f}) | "
                f"{max(map(np.mean, each)):.1%} | {np.mean(runs[name]):.1%} ({share:.1%}) | "
                f"{np.mean(bias[name]) * 100:+.1f}"
            )


def rules(rounds: int) -> dict[str, Rule]:
    """Return the rules: all runs, the most cautious bound that is known, and ours."""
    peto = min(0.001, LEVEL / 2 / (rounds - 1))
    ours = tuple(early_alpha(done, rounds, LEVEL) for done in range(1, rounds + 1))
    return {
        "all runs": Rule(levels=(*[-1.0] * (rounds - 1), LEVEL)),
        "Haybittle-Peto": Rule(levels=(*[peto] * (rounds - 1), LEVEL - (rounds - 1) * peto)),
        "early stop": Rule(levels=ours, futile=FUTILE),
    }


def stop(
    suites: Suites, rule: Rule
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64]]:
    """Return whether each suite is found to have an effect, after how many rounds, its lift."""
    enough = suites.cases * np.arange(1, suites.rounds + 1) >= MIN_RUNS
    clear = (suites.p <= np.array(rule.levels) + ROUNDING) & (suites.lift != 0) & enough
    ends = clear.copy()
    for done in range(1, suites.rounds):
        if 2 * done >= suites.rounds and enough[done - 1]:
            ends[:, done - 1] |= chance_of_effect(suites, done, rule.levels[-1]) < rule.futile
    ends[:, -1] = True
    last = ends.argmax(axis=1)
    row = np.arange(len(last))
    return clear[row, last], last + 1, suites.lift[row, last]


def chance_of_effect(suites: Suites, done: int, level: float) -> Floats:
    """Return the predictive power after some rounds; see the function of this name in `stats`."""
    lift, variance = suites.lift[:, done - 1], suites.variance[:, done - 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        shrinkage, information = LIFT_SD**2 / (LIFT_SD**2 + variance), 1 / variance
        total = suites.rounds / done * information
        more = total - information
        z = (lift * information + shrinkage * lift * more) / np.sqrt(total)
        spread = np.sqrt((more + shrinkage * variance * more**2) / total)
        limit = norm.ppf(1 - level / 2)
        chance = norm.cdf((-limit - z) / spread) + norm.sf((limit - z) / spread)
    return np.where(variance > 0, chance, 1.0)


def check_sample(suites: Suites) -> None:
    """Compare what the package decides after each round of a few suites."""
    rule = rules(suites.rounds)["early stop"]
    _, rounds, _ = stop(suites, rule)
    for suite in range(3):
        decided = (
            early_verdict(suites.after(suite, done), done, suites.rounds, LEVEL)
            for done in range(1, suites.rounds)
        )
        first = next((done for done, why in enumerate(decided, 1) if why), suites.rounds)
        assert first == rounds[suite], (first, rounds[suite], suites.after(suite, first))


def draw(setting: Setting, number: int, seed: int) -> Suites:
    """Draw suites, and test each after every round."""
    rng = np.random.default_rng([seed, *f"{setting}".encode()])
    chunks = [_drawn(setting, min(CHUNK, number - start), rng) for start in range(0, number, CHUNK)]
    p, lift, variance, truth, passes = (
        np.concatenate([chunk[part] for chunk in chunks]) for part in range(5)
    )
    return Suites(
        cases=setting.cases, p=p, lift=lift, variance=variance, truth=truth, passes=passes
    )


def _drawn(
    setting: Setting, number: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats, NDArray[np.int64]]:
    cases, rounds = setting.cases, setting.rounds
    without, with_ = _rates(setting, number, rng)
    passed = rng.random((number, rounds, 2, cases)) < np.stack([with_, without], 1)[:, None]
    passes = passed.cumsum(axis=1)
    done = np.arange(1, rounds + 1)[:, None]
    both = passes.sum(axis=2)
    lift = (passes[:, :, 0] - passes[:, :, 1]).mean(axis=2) / done[:, 0]
    rate = both / (2 * done)
    variance = (rate * (1 - rate) * 2 / done * (2 * done / (2 * done - 1))).sum(axis=2) / cases**2
    p = np.stack(
        [two_sided_p(passes[:, each, 0], both[:, each], each + 1) for each in range(rounds)], 1
    )
    return p, lift, variance, (with_ - without).mean(axis=1), passes


def _rates(setting: Setting, number: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the true pass rates without and with the skill, as `drawn_suites` draws them."""
    size, mean, concentration = (number, setting.cases), setting.rate, LOOKS[setting.look]
    without = np.full(size, mean)
    if concentration is not None:
        without = rng.beta(concentration * mean, concentration * (1 - mean), size)
    if setting.look == "60 % fixed":
        without = np.where(rng.random(size) < 0.6, rng.random(size) < mean, without)
    share = min(1.0, setting.change / (1 - mean))
    repaired: Floats | float = share
    if 0 < share < 1:
        repaired = rng.beta(0.8 * share, 0.8 * (1 - share), size)
    return without, without + repaired * (1 - without)


def two_sided_p(
    passes_with: NDArray[np.int64], both: NDArray[np.int64], runs: int
) -> NDArray[np.float64]:
    """Return the mid-p of `lift_test` for each row of cases.

    The distribution of the sum of independent hypergeometric variables is the product of their
    Fourier transforms.
    """
    length = 1 << int(passes_with.shape[1] * runs).bit_length()
    table = np.array(
        [
            [_hypergeometric(runs, total, k) if k <= runs else 0.0 for k in range(length)]
            for total in range(2 * runs + 1)
        ]
    )
    transforms = np.fft.rfft(table, axis=1)
    transformed = np.ones((len(both), transforms.shape[1]), complex)
    for case in both.T:
        transformed *= transforms[case]
    distribution = np.clip(np.fft.irfft(transformed, length, axis=1), 0, None)
    row, seen = np.arange(len(both)), passes_with.sum(axis=1)
    here = distribution[row, seen]
    up_to = distribution.cumsum(axis=1)[row, seen]
    tail = np.minimum(up_to - here, distribution.sum(axis=1) - up_to) + here / 2
    p: Floats = np.minimum(1.0, 2 * tail)
    return p


def _hypergeometric(runs: int, total: int, k: int) -> float:
    if not 0 <= total - k <= runs:
        return 0.0
    return comb(runs, k) * comb(runs, total - k) / comb(2 * runs, total)


if __name__ == "__main__":
    main()
