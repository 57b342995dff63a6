"""Measure what the errors of a judge do to lift and verdict, and what labels repair.

Suites are drawn from known pass rates, decided by a judge of known error rates, and labelled, ten
answers of each stratum and without error unless the table says otherwise:

    python benchmarks/simulate_judge.py --full

The same seed and number of suites print the same tables. ``docs/judging.md`` quotes them.

The last table repeats a second drawing, through the functions that draw and apply labels: models
give some texts often, the judge passes all wrong answers that are rare, and SKILL.md is edited.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import sqrt
from multiprocessing import Pool
from statistics import fmean

from pytest_upskill.cases.judge_labels import LabelsFile
from pytest_upskill.cases.skill import GateRule
from pytest_upskill.checks import CheckResult
from pytest_upskill.figures.cell import Cell
from pytest_upskill.grading.labels import cell_labels, draw
from pytest_upskill.models import Completion
from pytest_upskill.stats import lift, lift_interval, verdict
from pytest_upskill.stats.calibration import (
    JudgedCase,
    JudgedRuns,
    Label,
    correct_lift,
    corrected_verdict,
)
from pytest_upskill.trials.result import RunResult, TrialResult
from pytest_upskill.trials.trial import Arm

FEW, MANY = 150, 2000
"""Suites of a setting by default, and with ``--full``."""

ALL = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting that many suites are drawn from."""

    table: str
    row: str
    change: float = 0.0
    """True lift, where the mean pass rate without the skill is 50 %."""
    finds: tuple[float, float] = (1.0, 1.0)
    """Share that the judge passes of the answers that pass, with and without the skill."""
    rejects: tuple[float, float] = (1.0, 1.0)
    """Share that it fails of those that do not."""
    labels: int = 10
    """Labels of each stratum."""
    cases: int = 10
    runs: int = 5
    spread: float = 0.5
    """Concentration of the Beta distribution of pass rates over cases; 0 for equal ones."""
    older: float | None = None
    """Share that it rejected of the old answers with the skill that were labelled; None as now."""
    mislabelled: float = 0.0
    """Share of the labels that are wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of a suite, or the mean of a setting's suites."""

    judged: float
    corrected: float
    bias: float
    judged_covers: float
    corrected_covers: float
    judged_width: float
    corrected_width: float
    judged_finds: float
    """Whether the judge alone gives ``helps`` or ``hurts``."""
    corrected_finds: float


def main() -> None:
    """Draw the suites of every setting and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help=f"{MANY} suites a setting")
    parser.add_argument("--suites", type=int, default=FEW, help=f"suites a setting ({FEW})")
    parser.add_argument("--seed", type=int, default=1, help="seed of every figure (1)")
    parser.add_argument("--processes", type=int, default=2, help="processes (2)")
    args = parser.parse_args()
    suites = MANY if args.full else args.suites
    chosen = list(settings())
    with Pool(args.processes) as pool:
        jobs = [(each, suites, args.seed) for each in chosen]
        outcomes = dict(zip(chosen, pool.starmap(simulate, jobs, chunksize=1), strict=True))
    error = 100 * sqrt(0.05 * 0.95 / suites)
    print(
        f"{suites} suites a setting, seed {args.seed}; standard error of 95 %: {error:.1f} points"
    )
    for table, rows in groupby(chosen, key=lambda each: each.table):
        print_table(table, [(each.row, outcomes[each]) for each in rows])
    print_second_drawings(suites, args.seed)


def settings() -> Iterator[Setting]:
    """List every setting, table by table."""
    for right in (1.0, 0.95, 0.9, 0.8):
        for change in (0.45, 0.2, 0.0):
            yield Setting(
                table="equal errors in both arms, 10 cases x 5 runs",
                row=f"judge right in {right:.0%}, true {100 * change:+.0f}",
                change=change,
                finds=(right, right),
                rejects=(right, right),
            )
    for cases, runs in ((10, 5), (20, 10)):
        for points in (0, 2, 5, 10, 15):
            yield Setting(
                table=f"leniency towards the skill, true +0, {cases} cases x {runs} runs",
                row=f"{points} points",
                rejects=(1 - points / 50, 1.0),
                cases=cases,
                runs=runs,
            )
    for labels, said in ((10, "40 labels"), (15, "60 labels"), (25, "100 labels"), (ALL, "all")):
        table = "number of labels, 10 cases x 5 runs"
        lenient = Setting(
            table=table, row=f"{said}, 10 points of leniency", rejects=(0.8, 1.0), labels=labels
        )
        yield lenient
        yield Setting(
            table=table,
            row=f"{said}, true +20, right in 90%",
            change=0.2,
            finds=(0.9, 0.9),
            rejects=(0.9, 0.9),
            labels=labels,
        )
    table = "where it is hard, 10 cases x 5 runs, true +0"
    nothing = (0.02, 0.02)
    yield Setting(table=table, row="passes everything, cases alike", rejects=nothing, spread=0)
    yield Setting(table=table, row="passes everything", rejects=nothing)
    coin = (0.5, 0.5)
    yield Setting(table=table, row="tosses a coin, cases alike", finds=coin, rejects=coin, spread=0)
    yield Setting(table=table, row="tosses a coin", finds=coin, rejects=coin)
    yield Setting(table=table, row="labels of an older skill", rejects=(0.8, 1.0), older=1.0)
    for wrong in (0.0, 0.05, 0.1, 0.2):
        yield Setting(
            table="wrong labels, 10 cases x 5 runs, true +45, judge right in 90%",
            row=f"{wrong:.0%} of the labels are wrong",
            change=0.45,
            finds=(0.9, 0.9),
            rejects=(0.9, 0.9),
            mislabelled=wrong,
        )
    for points in (5, 10, 15):
        for cases, runs in ((10, 5), (20, 10)):
            yield Setting(
                table="a judge that has become more lenient to the skill since it was labelled",
                row=f"by {points} points, {cases} cases x {runs} runs",
                rejects=(1 - points / 50, 1.0),
                older=1.0,
                cases=cases,
                runs=runs,
            )
    table = "where it is hard, 10 cases x 20 runs, true +0, cases alike"
    yield Setting(table=table, row="passes everything", rejects=nothing, spread=0, runs=20)
    yield Setting(table=table, row="tosses a coin", finds=coin, rejects=coin, spread=0, runs=20)


def simulate(setting: Setting, suites: int, seed: int) -> Outcome:
    """Draw the suites of a setting and return their mean."""
    rng = random.Random(f"{seed} {setting}")
    drawn = [one(setting, rng) for _ in range(suites)]
    return Outcome(
        **{name: fmean(getattr(each, name) for each in drawn) for name in Outcome.__slots__}
    )


def one(setting: Setting, rng: random.Random) -> Outcome:
    """Draw a suite, have it judged and labelled, and compare both results with the truth."""
    without = [_rate(setting, rng) for _ in range(setting.cases)]
    with_ = [rate + 2 * setting.change * (1 - rate) for rate in without]
    truth = fmean(with_) - fmean(without)
    answers = {
        (index, arm): [
            _answer(rate, setting, rng, with_skill=arm, older=False) for _ in range(setting.runs)
        ]
        for arm, rates in ((True, with_), (False, without))
        for index, rate in enumerate(rates)
    }
    cases = [
        JudgedCase(_counted(answers[index, True]), _counted(answers[index, False]))
        for index in range(setting.cases)
    ]
    labels = _labels(setting, answers, (with_, without), rng)
    judged, correction = lift_interval([c.counts for c in cases]), correct_lift(cases, labels)
    estimate = lift([c.counts for c in cases])
    assert judged is not None
    assert correction is not None
    assert estimate is not None
    corrected = correction.lift
    effects = {"helps", "hurts"}
    return Outcome(
        judged=estimate,
        corrected=corrected.estimate,
        bias=corrected.estimate - truth,
        judged_covers=judged.low <= truth <= judged.high,
        corrected_covers=corrected.low <= truth <= corrected.high,
        judged_width=(judged.high - judged.low) / 2,
        corrected_width=(corrected.high - corrected.low) / 2,
        judged_finds=verdict([c.counts for c in cases]) in effects,
        corrected_finds=corrected_verdict(cases, labels) in effects,
    )


Answer = tuple[bool, bool]
"""Whether an answer passes, and whether the judge passes it."""


def _labels(
    setting: Setting,
    answers: dict[tuple[int, bool], list[Answer]],
    rates: tuple[list[float], list[float]],
    rng: random.Random,
) -> list[Label]:
    """Draw answers of each stratum: of these, or of those of an older skill."""
    if setting.older is not None:
        answers = answers | {
            (index, True): [
                _answer(rate, setting, rng, with_skill=True, older=True)
                for _ in range(setting.runs)
            ]
            for index, rate in enumerate(rates[0])
        }
    strata: dict[tuple[bool, bool], list[Label]] = {}
    for (index, arm), each in answers.items():
        for passed, judged in each:
            labelled = passed is not (rng.random() < setting.mislabelled)
            strata.setdefault((arm, judged), []).append(Label(index, arm, judged, labelled))
    return [
        label
        for stratum in strata.values()
        for label in rng.sample(stratum, min(setting.labels, len(stratum)))
    ]


def _rate(setting: Setting, rng: random.Random) -> float:
    return rng.betavariate(*[setting.spread / 2] * 2) if setting.spread else 0.5


def _answer(
    rate: float, setting: Setting, rng: random.Random, *, with_skill: bool, older: bool
) -> Answer:
    passes = rng.random() < rate
    arm = 0 if with_skill else 1
    rejects = setting.older if older and setting.older is not None else setting.rejects[arm]
    right = rng.random() < (setting.finds[arm] if passes else rejects)
    return passes, passes is right


def _counted(answers: list[Answer]) -> JudgedRuns:
    passes = sum(judged for _, judged in answers)
    return JudgedRuns(passes, len(answers), passes, len(answers) - passes)


def print_table(title: str, rows: list[tuple[str, Outcome]]) -> None:
    """Print a table; in points of 100, widths are halves of intervals."""
    print(f"\n{title}")
    print(f"{'':40} {'judge alone':^28} {'corrected':^28}")
    names = ("lift", "width", "covers", "effect")
    print(" " * 40, *(f"{name:>7}" for name in (*names, *names)), f"{'bias':>7}")
    for row, found in rows:
        alone = (found.judged, found.judged_width, found.judged_covers, found.judged_finds)
        corrected = (
            found.corrected,
            found.corrected_width,
            found.corrected_covers,
            found.corrected_finds,
            found.bias,
        )
        print(f"{row:40}", *(f"{100 * each:7.1f}" for each in (*alone, *corrected)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondDrawing:
    """Of one repetition, or the mean of all; lifts are fractions."""

    off: float
    """Corrected lift minus the lift if every answer were labelled."""
    covers_labelled: float
    """Whether the interval covers the latter."""
    covers_true: float
    """Whether the interval covers the true lift."""
    width: float
    """Half of the interval."""
    new_labels: float
    """Answers of the second drawing that need a label."""


RIGHT, WRONG = "It is right.", "It is wrong."
SHARES: dict[Arm, tuple[float, float]] = {"with_skill": (0.5, 0.2), "without_skill": (0.4, 0.0)}
"""Shares of right answers, and of rare wrong ones, in each arm."""
TRUE_LIFT = 0.1


def print_second_drawings(repetitions: int, seed: int) -> None:
    """Repeat the second drawing and print the means."""
    rng = random.Random(f"{seed} second drawing")
    drawn = [second_drawing(rng) for _ in range(repetitions)]
    print("\na second drawing after SKILL.md was edited, 10 cases x 10 runs, 40 labels")
    for name in SecondDrawing.__slots__:
        mean = fmean(getattr(each, name) for each in drawn)
        print(f"{name:40} {mean if name == 'new_labels' else 100 * mean:7.1f}")


def second_drawing(rng: random.Random) -> SecondDrawing:
    """Label a run, edit the skill, and label a drawing of a second run."""
    first = [_trial(str(case), arm, "1", rng) for case in range(10) for arm in SHARES]
    # As the recordings do, the second run repeats the answers without the skill.
    second = [
        _trial(each.case, "with_skill", "2", rng) if each.arm == "with_skill" else each
        for each in first
    ]
    labelled = _labelled(_draw(first, None))
    drawn = _draw(second, labelled)
    cell = Cell(
        path="skill_meta.json",
        skill="s",
        model="m",
        resolved="m",
        gate=GateRule(),
        planned=len(second),
        trials=tuple(second),
        judge="j",
        labels=cell_labels(_labelled(drawn), second, judge="j", model="m", resolved="m"),
    )
    correction = cell.lift.correction
    assert correction is not None
    corrected = correction.lift
    fully = fmean(
        (1 if trial.arm == "with_skill" else -1) * 2 * (run.completion.text == RIGHT)
        for trial in second
        for run in trial.runs
    )
    return SecondDrawing(
        off=corrected.estimate - fully,
        covers_labelled=corrected.low <= fully <= corrected.high,
        covers_true=corrected.low <= TRUE_LIFT <= corrected.high,
        width=(corrected.high - corrected.low) / 2,
        new_labels=len(drawn.answers) - drawn.labelled,
    )


def _trial(case: str, arm: Arm, version: str, rng: random.Random) -> TrialResult:
    right, rare = SHARES[arm]
    runs = []
    for _ in range(10):
        chance = rng.random()
        text = (
            RIGHT if chance < right else f"Rare {rng.random()}" if chance < right + rare else WRONG
        )
        check = CheckResult(name="judge", passed=text != WRONG, message="")
        completion = Completion(text=text, input_tokens=1, output_tokens=1)
        runs.append(RunResult(completion=completion, checks=(check,)))
    return TrialResult(
        skill="s",
        case=case,
        model="m",
        resolved="m",
        arm=arm,
        min_pass_rate=None,
        prompt_digest=case,
        skill_digest=version if arm == "with_skill" else "",
        runs=tuple(runs),
        planned=10,
        statements=("It is right.",),
        case_digest=case,
    )


def _draw(trials: list[TrialResult], before: LabelsFile | None) -> LabelsFile:
    file = draw(trials, case_file="", judge="j", answers=40, date="", before=before)
    assert file is not None
    return file


def _labelled(file: LabelsFile) -> LabelsFile:
    answers = [
        answer.model_copy(
            update={
                "labels": [
                    label.model_copy(update={"holds": answer.full_text == RIGHT})
                    for label in answer.labels
                ]
            }
        )
        for answer in file.answers
    ]
    return file.model_copy(update={"answers": answers})


if __name__ == "__main__":
    main()
