"""The figures of a cell: how each is named, rounded and explained, wherever it is shown.

A new figure is one row of a table below: then JUnit, JSON, CSV and HTML have it. What tables show,
in the terminal, Markdown, HTML and the history, is made of these figures too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pytest_upskill.figures.arm import AgentFigures, ArmFigures
from pytest_upskill.figures.cases import CaseLine, arm_figures
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.comparison import Comparison
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.judged import Judged
from pytest_upskill.figures.lift import Lift
from pytest_upskill.figures.trial_group import ARM_NAMES, Endings
from pytest_upskill.figures.triggers import Triggers
from pytest_upskill.figures.wording import estimate, money, percent, points, rate_text
from pytest_upskill.stats import Estimate
from pytest_upskill.stats.calibration import Agreement
from pytest_upskill.trials.trial import Arm

T = TypeVar("T")

Unit = Literal[
    "", "count", "mean", "share", "points", "tokens", "dollars", "seconds", "ratio", "probability"
]
"""What a value is a number of, which decides how it is rounded; empty for words."""

Scalar = str | bool | int | float | None
"""A value without its interval; None if it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a cell."""

    name: str
    """Its name in JSON; it follows ``upskill.`` in JUnit, and its dots are underscores in CSV."""
    value: Scalar | Estimate
    """Rates and lifts are fractions."""
    unit: Unit
    help: str

    @property
    def text(self) -> str:
        """The value as people read it: rounded, with its unit and its interval."""
        if isinstance(self.value, Estimate):
            return (estimate if self.unit == "points" else rate_text)(self.value)
        return _text(self.value, self.unit)

    @property
    def scalars(self) -> Mapping[str, Scalar]:
        """The value by its name, and the limits of its interval if it has one."""
        value, name = self.value, self.name
        if not isinstance(value, Estimate):
            return {name: value}
        return {name: value.estimate, f"{name}.low": value.low, f"{name}.high": value.high}


Row = tuple[str, Unit, str, Callable[[T], Scalar | Estimate]]
"""Name, unit and explanation of a figure, and how it is read from a part of a gate."""

_LIFT: Sequence[Row[Lift]] = (
    ("lift.verdict", "", "verdict without the comparison", lambda lift: lift.verdict),
    ("lift", "points", "pass rate with the skill minus without", lambda lift: lift.observed),
    ("cases", "count", "cases with valid runs in both arms", lambda lift: len(lift.measured_pairs)),
    (
        "cases.better",
        "count",
        "pass more often with the skill",
        lambda lift: lift.changes["better"],
    ),
    ("cases.worse", "count", "pass less often with it", lambda lift: lift.changes["worse"]),
    ("cases.failed", "count", "failed with the skill", lambda lift: len(lift.cell.failed_cases)),
    ("missing", "count", "runs without a usable reply", lambda lift: lift.cell.missing),
    (
        "tokens.ratio",
        "ratio",
        "tokens with the skill by those without",
        lambda lift: lift.token_ratio,
    ),
    ("ungraded", "count", "statements that no judge graded", lambda lift: lift.cell.ungraded),
    ("runs_needed", "count", "runs that would probably be enough", lambda lift: lift.runs_needed),
    ("at_k", "count", "the k of pass@k and pass^k", lambda lift: lift.cell.at_k or None),
    ("runs.spared", "count", "runs skipped by an early stop", lambda lift: lift.skipped_runs),
)

_ARM: Sequence[Row[ArmFigures]] = (
    ("passes", "count", "passed runs", lambda arm: arm.passes),
    ("runs", "count", "valid runs", lambda arm: arm.runs),
    ("pass_rate", "share", "mean pass rate of the cases", lambda arm: arm.pass_rate),
    ("checks_passed", "mean", "passed checks per run", lambda arm: arm.checks_passed),
    ("checks", "mean", "checks per run", lambda arm: arm.checks),
    ("tokens", "tokens", "tokens per run", lambda arm: arm.tokens),
    ("cost_usd", "dollars", "cost per run", lambda arm: arm.cost_usd),
    ("tokens_per_pass", "tokens", "tokens of all runs per pass", lambda arm: arm.tokens_per_pass),
    ("cost_usd_per_pass", "dollars", "cost of all per pass", lambda arm: arm.cost_usd_per_pass),
    ("latency_s", "seconds", "latency per run", lambda arm: arm.latency_s),
    ("pass_at_k", "share", "pass@k: at least one of k runs passes", lambda arm: arm.pass_at_k),
    ("pass_hat_k", "share", "pass^k: all of k runs pass", lambda arm: arm.pass_hat_k),
)

_JUDGE: Sequence[Row[Judged]] = (
    ("judge", "", "model that judged", lambda judged: judged.judge),
    ("judge.calibrated", "", "whether labels correct it", lambda judged: judged.calibrated),
    ("judge.tipping_point", "share", "leniency that it needs", lambda judged: judged.tipping_point),
    (
        "lift.corrected",
        "points",
        "lift, corrected by labels",
        lambda judged: judged.correction.estimate if judged.correction else None,
    ),
)

_AGREEMENT: Sequence[Row[Agreement]] = (
    ("holds", "share", "correct answers that the judge accepts", lambda agreed: agreed.holds),
    ("fails", "share", "wrong answers that the judge rejects", lambda agreed: agreed.fails),
)

AGENT: Sequence[Row[AgentFigures]] = (
    ("version", "", "versions of the agent", lambda agent: agent.version),
    (
        "offered",
        "share",
        "runs with the skill in the catalogue",
        lambda agent: _share(agent.offered, agent.runs),
    ),
    (
        "loaded",
        "share",
        "runs in which the skill was read",
        lambda agent: _share(agent.loaded, agent.runs),
    ),
    ("turns", "mean", "replies of the model per run", lambda agent: agent.turns),
    ("requests", "mean", "requests per run", lambda agent: agent.requests),
    ("calls", "mean", "tool calls per run", lambda agent: agent.calls),
)

_TRIGGERS: Sequence[Row[Triggers]] = (
    ("recall", "share", "queries that should choose the skill and do", lambda of: of.recall),
    ("false_triggers", "share", "other queries that choose it", lambda of: of.false_triggers),
    ("precision", "share", "choices of it that are wanted", lambda of: of.precision),
    ("queries", "count", "queries with a valid run", lambda of: of.queries),
    ("failed", "count", "queries that failed", lambda of: len(of.cell.failed_cases)),
    ("missing", "count", "runs without a usable reply", lambda of: of.cell.missing),
)

_ENDINGS: Sequence[Row[Endings]] = (
    ("cut", "count", "answers cut at the output limit", lambda ended: ended.cut),
    ("refused", "count", "answers that are refusals", lambda ended: ended.refused),
)

_PAST: Sequence[Row[Comparison]] = (
    ("compared_with", "", "baseline or git ref", lambda past: past.then),
    ("compared_cases", "count", "cases compared", lambda past: len(past.measured)),
    ("regressed", "", "whether it became worse", lambda past: past.regressed),
    ("regression.p", "probability", "p of having become worse", lambda past: past.p),
)


def figures(gate: Gate) -> list[Figure]:
    """Return the figures of a gate's cell; cells of one measure have figures of the same names."""
    cell, past = gate.cell, gate.comparison
    if cell.chooses:
        listed = [*_trigger_figures(cell)]
    else:
        shown = Figure(name="verdict", value=gate.verdict, unit="", help="verdict of the gate")
        listed = [shown, *_lift_figures(cell)]
    return [*listed, *read(_PAST, past if past and past.measured else None)]


Columns = Mapping[str, str]
"""The columns of a row in tables, by their heads."""


def columns_of(gate: Gate) -> Columns:
    """Return the most important figures of a gate's cell as the columns of a table."""
    shown = {figure.name: figure for figure in figures(gate)}
    if gate.cell.chooses:
        return {
            "recall [95 %]": shown["trigger.recall"].text.replace(", ", ","),
            "false triggers": shown["trigger.false_triggers"].text.replace(", ", ","),
            "precision": shown["trigger.precision"].text,
            "queries": shown["trigger.queries"].text,
        }
    lift, corrected, failed = shown["lift"], shown["lift.corrected"], shown["cases.failed"]
    judged = f", judged {lift.text.partition(' ')[0]}" if corrected.value is not None else ""
    three = shown["runs.old"].value is not None
    return {
        "pass rate": _change(shown, "pass_rate", old=three),
        "lift [95 %]": (corrected if judged else lift).text.replace(", ", ",") + judged,
        "verdict": gate.qualified_verdict + (f", {failed.text} failed" if failed.value else ""),
        **_means(shown),
    }


def case_columns(case: CaseLine) -> Columns:
    """Return the figures of a case as the columns of a table."""
    arms: tuple[Arm, ...] = ("without_skill", "old_skill", "with_skill")
    shown = {
        figure.name: figure
        for arm in arms
        for figure in read(
            _ARM, arm_figures(case.arms.get(arm)), name=f"{{}}.{arm.removesuffix('_skill')}"
        )
    }
    trials = (case.arms[arm] for arm in arms if arm in case.arms)
    tallies = (f"{trial.passes}/{len(trial.runs)}" for trial in trials)
    return {
        "passed": "->".join(tallies),
        "difference": "n/a" if case.difference is None else points(case.difference),
        **_means(shown),
    }


def _means(shown: Mapping[str, Figure]) -> Columns:
    """Return the mean checks and tokens of a run."""
    counted = next(
        (
            shown[f"checks.{arm}"]
            for arm in ("with", "without")
            if shown[f"checks.{arm}"].value is not None
        ),
        None,
    )
    ratio = shown.get("tokens.ratio")
    times = f" {ratio.text}" if ratio and ratio.value is not None else ""
    return {
        "checks": _change(shown, "checks_passed") + (f"/{counted.text}" if counted else ""),
        "tokens": _change(shown, "tokens") + times,
    }


def _change(shown: Mapping[str, Figure], name: str, *, old: bool = False) -> str:
    """Return a figure of each arm: ``60->95%``, or with the old skill between."""
    arms = ("without", "old", "with") if old else ("without", "with")
    *before, now = (shown[f"{name}.{arm}"].text for arm in arms)
    return "->".join([*(text.removesuffix("%") for text in before), now])


def read(
    rows: Sequence[Row[T]], source: T | None, *, name: str = "{}", of: str = ""
) -> Iterator[Figure]:
    """Yield the figures of a part of a cell.

    Args:
        rows: Where they are declared.
        source: The part; None if the cell has none, so that its figures are unknown.
        name: Where the name of a figure stands in the whole name.
        of: What follows its explanation.
    """
    for short, unit, explanation, value_of in rows:
        yield Figure(
            name=name.format(short),
            value=None if source is None else value_of(source),
            unit=unit,
            help=f"{explanation} {of}".rstrip(),
        )


def _lift_figures(cell: Cell) -> Iterator[Figure]:
    lift, endings = cell.lift, {each.arm: each for each in cell.endings}
    judged = lift.judged
    arms: Mapping[Arm, ArmFigures | None] = {
        "with_skill": lift.with_skill,
        "without_skill": lift.without_skill,
        "old_skill": lift.old_skill,
    }
    yield from read(_LIFT, lift)
    yield from read(_JUDGE, judged)
    for arm, of_arm in arms.items():
        name, of = f"{{}}.{arm.removesuffix('_skill')}", ARM_NAMES[arm]
        yield from read(_ARM, of_arm, name=name, of=of)
        yield from read(_ENDINGS, endings.get(arm), name=name, of=of)
    agreements = {
        "with": judged.with_skill if judged else None,
        "without": judged.without_skill if judged else None,
    }
    for which, agreement in agreements.items():
        of = f"{which} the skill"
        yield from read(_AGREEMENT, agreement, name=f"judge.{which}.{{}}", of=of)
    yield from read(AGENT, lift.agent, name="agent.{}")


def _trigger_figures(cell: Cell) -> Iterator[Figure]:
    endings = {each.arm: each for each in cell.endings}
    yield from read(_TRIGGERS, cell.triggers, name="trigger.{}")
    for arm in cell.version_arms:
        yield from read(_ENDINGS, endings.get(arm), name=f"trigger.{{}}.{arm}", of=ARM_NAMES[arm])


def _text(value: Scalar, unit: Unit) -> str:
    """Return a value as people read it, rounded by its unit."""
    if value is None:
        return "n/a"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return _SHOWN[unit](value)


_SHOWN: Mapping[Unit, Callable[[float], str]] = {
    "": str,
    "count": "{:,}".format,
    "mean": "{:.1f}".format,
    "share": lambda value: f"{percent(value)}%",
    "points": points,
    "tokens": "{:,.0f}".format,
    "dollars": money,
    "seconds": "{:.1f} s".format,
    "ratio": "x{:.2f}".format,
    "probability": "{:.2g}".format,
}


def _share(count: int | None, runs: int) -> float | None:
    return None if count is None else count / runs
