"""The figures of a cell: how each is named, rounded and explained, wherever it is shown.

A new figure is one row of a table below: then JUnit, JSON, HTML and the history's CSV have it. What
tables show, in the terminal, Markdown, HTML and the history, is made of these figures too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from pytest_upskill.figures.arm import AgentFigures, ArmFigures, figures_of_runs
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.comparison import Comparison
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.judged import Judged
from pytest_upskill.figures.lift import Lift, changes_of, observed_lift
from pytest_upskill.figures.trial_group import ARM_NAMES
from pytest_upskill.figures.triggers import Triggers
from pytest_upskill.figures.wording import estimate, money, percent, points, rate_text
from pytest_upskill.project.messages import counted
from pytest_upskill.stats import CaseCounts, Estimate
from pytest_upskill.stats.calibration import Agreement
from pytest_upskill.trials.result import RunResult, TrialResult
from pytest_upskill.trials.trial import ARMS, Arm

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
        return _shown(self.value, self.unit)

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
    ("lift.verdict", "", "verdict without the comparison", lambda of: of.verdict),
    ("lift", "points", "pass rate with the skill minus without", lambda of: of.observed),
    ("cases", "count", "cases of the lift, without train cases", lambda of: of.changes.total()),
    ("cases.better", "count", "pass more often with the skill", lambda of: of.changes["better"]),
    ("cases.worse", "count", "pass less often with it", lambda of: of.changes["worse"]),
    ("cases.failed", "count", "failed with the skill", lambda of: len(of.cell.failed_cases)),
    ("missing", "count", "runs without a usable reply", lambda of: of.cell.missing),
    ("tokens.ratio", "ratio", "tokens with the skill by those without", lambda of: of.token_ratio),
    ("ungraded", "count", "statements that no judge graded", lambda of: of.cell.ungraded),
    ("runs_needed", "count", "runs that would probably be enough", lambda of: of.runs_needed),
    ("at_k", "count", "the k of pass@k and pass^k", lambda of: of.cell.at_k or None),
    ("runs.spared", "count", "runs skipped by an early stop", lambda of: of.skipped_runs),
)

_ARM: Sequence[Row[ArmFigures]] = (
    ("passes", "count", "passed runs", lambda of: of.passes),
    ("runs", "count", "valid runs", lambda of: of.runs),
    ("pass_rate", "share", "mean pass rate of the cases", lambda of: of.pass_rate),
    ("checks_passed", "mean", "passed checks per run", lambda of: of.checks_passed),
    ("checks", "mean", "checks per run", lambda of: of.checks),
    ("tokens", "tokens", "tokens per run", lambda of: of.tokens),
    ("cost_usd", "dollars", "cost per run", lambda of: of.cost_usd),
    ("tokens_per_pass", "tokens", "tokens of all runs per pass", lambda of: of.tokens_per_pass),
    ("cost_usd_per_pass", "dollars", "cost of all per pass", lambda of: of.cost_usd_per_pass),
    ("latency_s", "seconds", "latency per run", lambda of: of.latency_s),
    ("pass_at_k", "share", "pass@k: at least one of k runs passes", lambda of: of.pass_at_k),
    ("pass_hat_k", "share", "pass^k: all of k runs pass", lambda of: of.pass_hat_k),
)

_JUDGE: Sequence[Row[Judged]] = (
    ("judge", "", "model that judged", lambda of: of.cell.judge),
    ("judge.calibrated", "", "whether labels correct it", lambda of: of.calibrated),
    ("judge.tipping_point", "share", "leniency that it needs", lambda of: of.tipping_point),
    ("lift.corrected", "points", "lift, corrected by labels", lambda of: of.corrected_lift),
)

_AGREEMENT: Sequence[Row[Agreement]] = (
    ("holds", "share", "correct answers that the judge accepts", lambda of: of.holds),
    ("fails", "share", "wrong answers that the judge rejects", lambda of: of.fails),
)

AGENT: Sequence[Row[AgentFigures]] = (
    ("version", "", "versions of the agent", lambda of: of.version),
    ("offered", "share", "runs with the skill in the catalogue", lambda of: of.share(of.offered)),
    ("loaded", "share", "runs in which the skill was read", lambda of: of.share(of.loaded)),
    ("turns", "mean", "replies of the model per run", lambda of: of.turns),
    ("requests", "mean", "requests per run", lambda of: of.requests),
    ("calls", "mean", "tool calls per run", lambda of: of.calls),
)

_TRIGGERS: Sequence[Row[Triggers]] = (
    ("recall", "share", "queries that should choose the skill and do", lambda of: of.recall),
    ("false_triggers", "share", "other queries that choose it", lambda of: of.false_triggers),
    ("precision", "share", "choices of it that are wanted", lambda of: of.precision),
    ("queries", "count", "queries with a valid run", lambda of: of.queries),
    ("failed", "count", "queries that failed", lambda of: len(of.cell.failed_cases)),
    ("missing", "count", "runs without a usable reply", lambda of: of.cell.missing),
)

_ANSWERS: Sequence[Row[Sequence[RunResult]]] = (
    ("cut", "count", "answers cut at the output limit", lambda of: sum(x.is_cut for x in of)),
    ("refused", "count", "answers that are refusals", lambda of: sum(x.refused for x in of)),
)

_PAST: Sequence[Row[Comparison]] = (
    ("compared_with", "", "baseline or git ref", lambda of: of.compared_with),
    ("compared_cases", "count", "cases compared", lambda of: len(of.measured)),
    ("regressed", "", "whether it became worse", lambda of: of.regressed),
    ("regression.p", "probability", "p of having become worse", lambda of: of.p),
)


def figures(gate: Gate) -> list[Figure]:
    """Return the figures of a gate's cell; cells of one measure have figures of the same names."""
    cell, past = gate.cell, gate.comparison
    if cell.chooses:
        found = [*figures_in(_TRIGGERS, cell.triggers, name="trigger.{}")]
        for arm in cell.version_arms:
            answers, name = cell.answers.get(arm), f"trigger.{{}}.{arm}"
            found += figures_in(_ANSWERS, answers, name=name, of=ARM_NAMES[arm])
    else:
        verdict = Figure(name="verdict", value=gate.verdict, unit="", help="verdict of the gate")
        found = [verdict, *_lift_figures(cell)]
    return [*found, *figures_in(_PAST, past if past and past.measured else None)]


def scalars(gate: Gate) -> dict[str, Scalar]:
    """Return the figures of a gate's cell by their names, with the limits of intervals."""
    return {name: value for each in figures(gate) for name, value in each.scalars.items()}


Columns = Mapping[str, str]
"""The columns of a row in tables, by their heads."""


def columns_of(gate: Gate) -> Columns:
    """Return the most important figures of a gate's cell as the columns of a table."""
    lift, triggers = gate.cell.lift, gate.cell.triggers
    if gate.cell.chooses:
        return {
            "recall [95 %]": _shown(triggers.recall, "share").replace(", ", ","),
            "false triggers": _shown(triggers.false_triggers, "share").replace(", ", ","),
            "precision": _shown(triggers.precision, "share"),
            "queries": _shown(triggers.queries, "count"),
        }
    judged = (
        f", judged {points(lift.observed.estimate)}" if lift.correction and lift.observed else ""
    )
    failed = len(gate.cell.failed_cases)
    return {
        "pass rate": _change(lift.arms, lambda arm: _shown(arm.pass_rate, "share")),
        "lift [95 %]": _shown(lift.deciding, "points").replace(", ", ",") + judged,
        "verdict": gate.qualified_verdict + (f", {failed} failed" if failed else ""),
        **_means(lift.arms, lift.token_ratio),
    }


def in_words(gate: Gate) -> str:
    """Return the result: ``+34 points: 6 of 10 cases better, 3 unchanged, 1 worse``.

    Compared with the past, that comes first: ``-20 points against main: …``.
    Empty if no case has a valid run in both arms.
    """
    lift, past = gate.cell.lift, gate.comparison
    if lift.deciding is None:
        return ""
    lifted = points(lift.deciding.estimate)
    # Labels correct the lift, not the result of a case.
    cases = _in_words(lift.changes) + (", as judged" if lift.correction else "")
    if past is None or past.mean_change is None:
        against = " against no skill" if past else ""
        return f"{lifted} points{against}: {cases}"
    since = _in_words(changes_of(case.counts for case in past.measured))
    other = set(gate.cell.other_cases)
    which = ", without new and changed cases" if other and other.isdisjoint(gate.past) else ""
    against = f"{points(past.mean_change)} points against {past.base}{which}: {since}"
    return f"{against}; {lifted} against no skill: {cases}"


def _in_words(changes: Counter[str]) -> str:
    """Return how many cases changed: ``6 of 10 cases better, 3 unchanged, 1 worse``."""
    rest = (f"{changes[what]} {what}" for what in ("unchanged", "worse") if changes[what])
    first = f"{changes['better']} of {counted(changes.total(), 'case')} better"
    return ", ".join([first, *rest])


CaseStatus = Literal[
    "regressed", "worse", "incomplete", "never passes", "same", "better", "always passes"
]
"""Result of a case, the most urgent first; one that always or never passes in every arm does not
affect the lift."""

_ORDER: tuple[CaseStatus, ...] = get_args(CaseStatus)
_PAIR: tuple[Arm, Arm] = ("with_skill", "without_skill")
_ARMS: tuple[Arm, ...] = ("without_skill", "old_skill", "with_skill")
"""Arms in the order of their figures in tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLine:
    """One case of a cell with its trials in all arms."""

    case: str
    arms: Mapping[Arm, TrialResult]
    """Its trial in each arm that ran; at least one."""
    difference: Estimate | None
    """Pass rate with the skill minus without, a fraction; None if an arm has no valid run."""
    was: str
    """Passes of runs in the baseline or at the git ref, ``4/5``; empty if not compared."""
    failed: bool
    """Whether the case failed with the skill."""
    status: CaseStatus
    """Result of the case."""
    than: str
    """Than what the case is better or worse: a git ref or ``without``; empty if it is clear."""
    change: float
    """Change of the pass rate that the status is about: since the ref, else by the skill."""


def case_lines(gate: Gate) -> list[CaseLine]:
    """Return the cases of a gate's cell, the most urgent first."""
    cases: dict[str, dict[Arm, TrialResult]] = {}
    for trial in sorted(gate.cell.counted_trials, key=lambda trial: ARMS.index(trial.arm)):
        cases.setdefault(trial.case, {})[trial.arm] = trial
    lines = [_case_line(gate, case, arms) for case, arms in cases.items()]
    return sorted(lines, key=lambda line: (_ORDER.index(line.status), line.change))


def _case_line(gate: Gate, case: str, arms: Mapping[Arm, TrialResult]) -> CaseLine:
    with_, without = (_tally(arms.get(arm)) for arm in _PAIR)
    difference, past = observed_lift([CaseCounts(*with_, *without)]), gate.past.get(case)
    change, base = difference.estimate if difference else 0.0, ""
    if gate.comparison and past and "old_skill" in arms:
        base = "without"
        if past.counts.difference:
            change, base = float(past.counts.difference), gate.comparison.base
    rates = {trial.passes / len(trial.runs) for trial in arms.values() if trial.runs}
    if past:
        rates.add(past.counts.passes_without / past.counts.runs_without)
    status: CaseStatus = "same"
    if gate.regressed and past and past.counts.difference < 0:
        status = "regressed"
    elif difference is None:
        status = "incomplete"
    elif change:
        status = "better" if change > 0 else "worse"
    elif rates in ({0.0}, {1.0}):
        status = "always passes" if rates == {1.0} else "never passes"
    return CaseLine(
        case=case,
        arms=arms,
        difference=difference,
        was=past.was if past else "",
        failed="with_skill" in arms and arms["with_skill"].failed,
        status=status,
        than=base if status in {"better", "worse"} else "",
        change=change,
    )


def _tally(trial: TrialResult | None) -> tuple[int, int]:
    """Return passes and valid runs."""
    return (trial.passes, len(trial.runs)) if trial else (0, 0)


def arms_of(gates: Iterable[Gate]) -> str:
    """Return the arms in the order of their figures in tables: ``without -> with``."""
    three = any("old_skill" in gate.cell.lift.arms for gate in gates)
    return "without -> old -> with" if three else "without -> with"


def case_columns(case: CaseLine) -> Columns:
    """Return the figures of a case as the columns of a table."""
    arms = {arm: figures_of_runs([each.runs]) for arm, each in case.arms.items() if each.runs}
    passed = ("{}/{}".format(*_tally(case.arms[arm])) for arm in _ARMS if arm in case.arms)
    return {
        "passed": "->".join(passed),
        "difference": points(case.difference.estimate) if case.difference else "n/a",
        **_means(arms),
    }


def _means(arms: Mapping[Arm, ArmFigures], token_ratio: float | None = None) -> Columns:
    """Return the mean checks and tokens of a run."""
    ratio = f" {_shown(token_ratio, 'ratio')}" if token_ratio else ""
    of_all = next((f"/{_shown(arms[arm].checks, 'mean')}" for arm in _PAIR if arm in arms), "")
    return {
        "checks": _change(arms, lambda arm: _shown(arm.checks_passed, "mean")) + of_all,
        "tokens": _change(arms, lambda arm: _shown(arm.tokens, "tokens")) + ratio,
    }


def _change(arms: Mapping[Arm, ArmFigures], text: Callable[[ArmFigures], str]) -> str:
    """Return a figure of each arm: ``60->95%``, with that of the old skill between."""
    shown = [arm for arm in _ARMS if arm in arms or arm in _PAIR]
    *before, now = (text(arms[arm]) if arm in arms else "n/a" for arm in shown)
    return "->".join([*(text.removesuffix("%") for text in before), now])


def figures_in(
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
    lift, judged = cell.lift, cell.lift.judged
    yield from figures_in(_LIFT, lift)
    yield from figures_in(_JUDGE, judged)
    for arm in (*_PAIR, "old_skill"):
        name, of = f"{{}}.{arm.removesuffix('_skill')}", ARM_NAMES[arm]
        yield from figures_in(_ARM, lift.arms.get(arm), name=name, of=of)
        yield from figures_in(_ANSWERS, cell.answers.get(arm), name=name, of=of)
    for which in ("with", "without"):
        agreement = judged.agreement(with_skill=which == "with") if judged else None
        name, of = f"judge.{which}.{{}}", f"{which} the skill"
        yield from figures_in(_AGREEMENT, agreement, name=name, of=of)
    yield from figures_in(AGENT, lift.agent, name="agent.{}")


def _shown(value: Scalar | Estimate, unit: Unit) -> str:
    """Return a value as people read it: rounded, with its unit and its interval."""
    if value is None or isinstance(value, str):
        return value or "n/a"
    if isinstance(value, Estimate):
        return (estimate if unit == "points" else rate_text)(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
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
