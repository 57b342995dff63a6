"""The figures of a cell: how each is named, rounded and explained, wherever it is shown.

A new figure is one row of a table below: then JUnit, JSON, CSV and HTML have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pytest_upskill.figures.arm import AgentFigures, ArmFigures
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.comparison import Comparison
from pytest_upskill.figures.gate import CellGate
from pytest_upskill.figures.judged import Judged
from pytest_upskill.figures.trial_group import ARM_NAMES, Endings
from pytest_upskill.figures.trigger_cell import TriggerCell
from pytest_upskill.figures.wording import estimate, money, percent, points, rate_text
from pytest_upskill.stats import Agreement, Estimate
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

_LIFT: Sequence[Row[Cell]] = (
    ("lift.verdict", "", "verdict without the comparison", lambda cell: cell.verdict),
    ("lift", "points", "pass rate with the skill minus without", lambda cell: cell.lift),
    ("cases", "count", "cases with valid runs in both arms", lambda cell: len(cell.pairs.measured)),
    ("cases.failed", "count", "failed with the skill", lambda cell: len(cell.failed_cases)),
    ("missing", "count", "runs without a usable reply", lambda cell: cell.missing),
    (
        "tokens.ratio",
        "ratio",
        "tokens with the skill by those without",
        lambda cell: cell.token_ratio,
    ),
    ("runs_needed", "count", "runs that would probably be enough", lambda cell: cell.runs_needed),
    ("runs.spared", "count", "runs skipped by an early stop", lambda cell: cell.skipped_runs),
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

TRIGGERS: Sequence[Row[TriggerCell]] = (
    ("recall", "share", "queries that should choose the skill and do", lambda cell: cell.recall),
    ("false_triggers", "share", "other queries that choose it", lambda cell: cell.false_triggers),
    ("precision", "share", "choices of it that are wanted", lambda cell: cell.precision),
    ("queries", "count", "queries with a valid run", lambda cell: cell.queries),
    ("failed", "count", "queries that failed", lambda cell: len(cell.failed_cases)),
    ("missing", "count", "runs without a usable reply", lambda cell: cell.missing),
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


def figures(gate: CellGate[Cell | TriggerCell]) -> list[Figure]:
    """Return the figures of a gate's cell; cells of one kind have figures of the same names."""
    cell, past = gate.cell, gate.comparison
    if isinstance(cell, TriggerCell):
        listed = [*_trigger_figures(cell)]
    else:
        verdict = "regression" if gate.shows_regression else cell.verdict
        shown = Figure(name="verdict", value=verdict, unit="", help="verdict of the gate")
        listed = [shown, *_lift_figures(cell)]
    return [*listed, *read(_PAST, past if past and past.measured else None)]


def trigger_columns(cell: TriggerCell) -> list[str]:
    """Return recall, false triggers, precision and queries, as in a table."""
    return [figure.text for figure in read(TRIGGERS[:4], cell)]


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
    judged, endings = cell.judged, {each.arm: each for each in cell.endings}
    arms: Mapping[Arm, ArmFigures | None] = {
        "with_skill": cell.with_skill,
        "without_skill": cell.without_skill,
        "old_skill": cell.old_skill,
    }
    yield from read(_LIFT, cell)
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
    yield from read(AGENT, cell.agent, name="agent.{}")


def _trigger_figures(cell: TriggerCell) -> Iterator[Figure]:
    endings = {each.arm: each for each in cell.endings}
    yield from read(TRIGGERS, cell, name="trigger.{}")
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
