"""The gate: a decision about each cell by its limits, reported like a test."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal, NamedTuple, Self, get_args

from pytest_upskill.cases.skill import GateRule
from pytest_upskill.figures.baseline import Baselines
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.comparison import ComparedCase, Comparison, compare
from pytest_upskill.figures.lift import CellVerdict, Lift
from pytest_upskill.figures.triggers import DESCRIBE, Triggers
from pytest_upskill.figures.wording import bounds, estimate, percent, points, rate_text

FailOn = Literal["hurts", "regression", "no-effect", "too-few-runs", "uncalibrated", "cases"]
FAIL_ON: tuple[FailOn, ...] = get_args(FailOn)

_AGREE = "have a maintainer agree and merge past this check"
_RESTORE = f"restore the cases, or {_AGREE}"
_UNMARK = f"correct the skill and remove the mark, or {_AGREE}"

ShownVerdict = CellVerdict | Literal["regression"]
"""A cell's verdict, or ``regression``."""

_REASONS: Mapping[CellVerdict, str] = {
    "hurts": "the skill hurts",
    "no effect": "the skill has no effect",
    "too few runs": "too few runs to tell",
}
"""Why a gate fails, by the verdict that fails it."""

_CORRECT = "correct the skill where answers fail with it, or change the gate"
_LABEL = "label some of its answers (pytest-upskill judge draw REPORT), or change the gate"

_NEXT_STEPS: Mapping[CellVerdict, str] = {
    "hurts": "read the answers that fail only with the skill, and correct or remove what misled "
    "the model",
    "no effect": "remove the skill, write harder cases, which a model fails without it, or change "
    "the gate",
    "too few runs": "measure more runs or cases, add to the skill what the answers that fail with "
    "it lack, or change the gate",
}

_JUDGED_PAST = (
    "a judge decided both versions, and no labels show its errors about the old one: read the "
    "answers before you change the skill"
)
"""Caveat about a regression that a judge found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds(GateRule):
    """Thresholds from the options, of which a case file can override the limits."""

    fail_on: frozenset[FailOn]
    """What fails the gate: verdicts, an uncalibrated judge, and ``cases`` that a branch took."""

    def with_overrides(self, by: GateRule) -> Self:
        """Return the thresholds with those that a case file sets in their place."""
        own = {limit.name: getattr(by, limit.name) for limit in fields(by)}
        return replace(self, **{name: value for name, value in own.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Decision about one cell."""

    cell: Cell
    outcome: Literal["passed", "failed", "skipped"]
    text: str
    """One line; it begins with the cell's name unless the gate is skipped."""
    comparison: Comparison | None = None
    """Comparison with the baseline or the git ref; None for none."""
    misses_data: bool = False
    """Whether missing runs or cut answers prevent a decision."""
    next_step: str = ""
    """What to do about a gate that failed."""

    @property
    def nodeid(self) -> str:
        """Node id, such as ``path::gate[model]``."""
        return f"{self.cell.path}::{self.name}"

    @property
    def name(self) -> str:
        """The part of the node id after the path."""
        return f"{'trigger-gate' if self.cell.chooses else 'gate'}[{self.cell.model}]"

    @property
    def is_red(self) -> bool:
        """Whether the gate or one of the cell's cases failed."""
        return self.outcome == "failed" or bool(self.cell.failed_cases)

    @property
    def regressed(self) -> bool:
        """Whether reports show a regression in place of the verdict."""
        past = self.comparison
        return past is not None and past.regressed and self.outcome != "skipped"

    @property
    def verdict(self) -> ShownVerdict:
        """Verdict in reports: ``regression`` takes precedence over that of the lift."""
        return "regression" if self.regressed else self.cell.lift.verdict

    @property
    def qualified_verdict(self) -> str:
        """The verdict, marked as uncalibrated if it rests on a judge that no labels correct."""
        if self.cell.lift.uncalibrated and self.verdict in {"helps", "hurts"}:
            return f"{self.verdict}, uncalibrated"
        return self.verdict

    @property
    def details(self) -> list[str]:
        """Lines below the text: of a regression figures and cases; wrong choices; advice."""
        cell, past = self.cell, self.comparison
        lines = cell.triggers.mistakes
        if past is not None and self.regressed:
            if not cell.chooses:
                lines = [f"against no skill: {_lift_sentence(cell.lift)}"]
                lines += [_JUDGED_PAST] if cell.lift.judged else []
            return [*past.worse_lines, *lines, f"next: {self.next_step or past.next_step}"]
        return [*lines, f"next: {self.next_step}"] if self.next_step else lines

    @property
    def report(self) -> str:
        """Text and details, one per line."""
        return "\n".join([self.text, *self.details])

    @cached_property
    def past(self) -> Mapping[str, ComparedCase]:
        """The compared cases by id."""
        return {each.id: each for each in self.comparison.measured} if self.comparison else {}


def decide_gates(
    cells: Sequence[Cell], thresholds: Thresholds, baselines: Baselines | None
) -> list[Gate]:
    """Decide the gate of every cell.

    Args:
        cells: All cells of the session; p-values are adjusted for the number of a kind.
        thresholds: Thresholds from the options; a case file's take precedence.
        baselines: Baselines to compare with; None for no comparison. A cell with trials of an old
            skill from a git ref is compared with those instead.
    """
    pairs = zip(cells, compare(cells, baselines), strict=True)
    return [decide_gate(cell, thresholds, past) for cell, past in pairs]


def decide_gate(cell: Cell, thresholds: Thresholds, comparison: Comparison | None = None) -> Gate:
    """Decide whether a cell meets the thresholds.

    The gate fails if a problem is certain, and decides nothing if one is only possible.

    Args:
        cell: The cell.
        thresholds: Thresholds from the options; the case file's take precedence.
        comparison: Comparison with the cell's past, None for none.
    """
    if reason := cell.why_undecidable:
        return skipped_gate(cell, reason)
    problems = list(_problems(cell, thresholds.with_overrides(cell.gate), comparison))
    certain = [problem for problem in problems if problem.is_certain]
    if problems and not certain:
        possible = "; ".join(problem.text for problem in problems)
        # Those of other cells matter through Holm's correction.
        open_runs = cell.open_runs or "missing runs or cut answers of other cells"
        gate = skipped_gate(cell, f"missing data: {open_runs} could decide: {possible}")
        return replace(gate, misses_data=True, comparison=comparison)
    figures = _trigger_sentence(cell.triggers) if cell.chooses else _lift_sentence(cell.lift)
    gate = Gate(
        cell=cell,
        outcome="failed" if certain else "passed",
        text=f"{cell.name}: {'; '.join(problem.text for problem in certain) or figures}",
        comparison=comparison,
        next_step="; ".join(dict.fromkeys(problem.next_step for problem in certain)),
    )
    # A failed gate has the figures too, unless its details do: those of a lift that regressed.
    if not certain or (gate.regressed and not cell.chooses):
        return gate
    return replace(gate, text=f"{gate.text} ({figures})")


def skipped_gate(cell: Cell, reason: str) -> Gate:
    """Return a gate that decides nothing, with the reason."""
    misses_data = cell.lift.verdict == "missing data"
    if cell.chooses:
        misses_data = bool(cell.missing) and not cell.is_by_words
    text = f"gate not decided: {reason}"
    return Gate(cell=cell, outcome="skipped", text=text, misses_data=misses_data)


class _Problem(NamedTuple):
    """A threshold that a cell misses, or could miss because of open runs."""

    text: str
    is_certain: bool
    """Whether the cell misses it whatever the results of the open runs."""
    next_step: str


def _problems(
    cell: Cell, thresholds: Thresholds, comparison: Comparison | None
) -> Iterator[_Problem]:
    """Yield the thresholds that a cell misses, or could miss because of open runs."""
    lift, triggers, fail_on = cell.lift, cell.triggers, thresholds.fail_on
    is_worse = comparison is not None and (comparison.regressed or comparison.undecided)
    if comparison is not None and is_worse and "regression" in fail_on:
        yield _Problem(comparison.headline, comparison.regressed, comparison.next_step)
    if "cases" in fail_on and cell.case_changes:
        yield _Problem(cell.case_changes, is_certain=True, next_step=_RESTORE)
    if "cases" in fail_on and comparison is not None:
        hidden = [case.id for case in comparison.worse if case.id in cell.excused_cases]
        for what, cases, step in (
            ("not compared with the baseline", comparison.lost, _RESTORE),
            (f"excused by a mark, though worse than {comparison.base}", hidden, _UNMARK),
        ):
            if cases:
                yield _Problem(f"{what}: {', '.join(cases)}", is_certain=True, next_step=step)
    if cell.chooses:
        least, most = thresholds.min_recall, thresholds.max_false_triggers
        yield from _beyond(triggers.recall_if, least, "recall is under {:g}%", DESCRIBE)
        false = "false triggers are over {:g}%"
        yield from _beyond(triggers.false_if, most, false, DESCRIBE, is_most=True)
        return
    step = _NEXT_STEPS.get(lift.verdict, _CORRECT)
    by = "corrected " if lift.correction else ""
    rate, least = f"{by}pass rate with the skill", thresholds.min_mean_pass_rate
    yield from _beyond(lift.pass_rate_if, least, f"{rate} is under {{:g}}%", step)
    yield from _beyond(lift.lift_if, thresholds.min_lift, f"{by}lift is under {{:+g}} points", step)
    if lift.uncalibrated and "uncalibrated" in fail_on:
        yield _Problem("it rests on an uncalibrated judge", is_certain=True, next_step=_LABEL)
    # With open runs the verdict is `too few runs`, which may be none of the possible ones.
    for verdict in sorted(lift.possible_verdicts | {lift.verdict}):
        # What an uncalibrated judge decides against a skill may be its own mistake.
        is_doubtful = lift.uncalibrated and verdict == "hurts"
        if verdict.replace(" ", "-") in fail_on and not is_doubtful:
            yield _Problem(_REASONS[verdict], verdict == lift.verdict, _NEXT_STEPS[verdict])


def _beyond(
    rate_if: Callable[[bool], float | None],
    limit: float | None,
    text: str,
    next_step: str,
    *,
    is_most: bool = False,
) -> Iterator[_Problem]:
    """Yield the problem that a figure is beyond its limit, or could be because of open runs.

    Args:
        rate_if: Returns the figure if all open runs were for the skill, or against it.
        limit: The least allowed; None for none.
        text: The problem, with a place for the limit in percent.
        next_step: What to do about it.
        is_most: Whether the limit is the most allowed instead.
    """
    rates = [rate for rate in map(rate_if, (False, True)) if rate is not None]
    if limit is None or not rates:
        return
    beyond = [rate > limit if is_most else rate < limit for rate in rates]
    if any(beyond):
        yield _Problem(text.format(100 * limit), all(beyond), next_step)


def _trigger_sentence(triggers: Triggers) -> str:
    """Return how often the skill is chosen, with intervals."""
    rates = (("recall", triggers.recall), ("false triggers", triggers.false_triggers))
    parts = [f"{name} {rate_text(rate)}" for name, rate in rates if rate]
    if triggers.precision is not None:
        parts.append(f"precision {percent(triggers.precision)}%")
    return ", ".join(parts)


def _lift_sentence(lift: Lift) -> str:
    """Return verdict, pass rates and lift with its interval."""
    with_, without = lift.arms.get("with_skill"), lift.arms.get("without_skill")
    if with_ is None or without is None or lift.observed is None:
        return "no case ran in both arms"
    needed = f", about {lift.runs_needed} are needed" if lift.runs_needed else ""
    by = " by an uncalibrated judge" if lift.uncalibrated else ""
    judged = "judged lift" if lift.judged else "lift"
    sentence = (
        f"{lift.verdict}{by}{needed}: passed {percent(without.pass_rate)}% without, "
        f"{percent(with_.pass_rate)}% with, "
        f"{judged} {points(lift.observed.estimate)} points {bounds(lift.observed)}"
    )
    if lift.correction:
        sentence += f", corrected {estimate(lift.correction.lift)}"
    return ", ".join(filter(None, (sentence, tipping_point(lift))))


def tipping_point(lift: Lift) -> str:
    """Return how wrong an uncalibrated judge would have to be; empty without such a verdict."""
    least = lift.judged.tipping_point if lift.judged else None
    if least is None or lift.doubt:
        return ""
    favors = "favors" if lift.verdict == "helps" else "disfavors"
    return f"holds unless the judge {favors} the skill by more than {points(least)[1:]} points"
