"""What a command decided, its ``decision.json``, and the figures in a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Case
from pytest_upskill.figures.wording import bounds, percent, points
from pytest_upskill.report.history.terminal import bar
from pytest_upskill.stats import CaseCounts, Interval, lift, lift_interval, verdict
from pytest_upskill.teacher.engine import Engine, Stopped
from pytest_upskill.teacher.files import Drafts, display_path
from pytest_upskill.teacher.holdout import split_cases


def figures_of(cases: Sequence[CaseCounts]) -> dict[str, float]:
    """Return mean pass rates before and after, the lift and its interval, as JSON."""
    estimate, interval = lift(cases), lift_interval(cases)
    # There are cases, and a missing run would have stopped the command.
    assert estimate is not None
    assert interval is not None
    return {
        "before": fmean(case.passes_without / case.runs_without for case in cases),
        "after": fmean(case.passes_with / case.runs_with for case in cases),
        "lift": estimate,
        "low": interval.low,
        "high": interval.high,
    }


def comparison_lines(
    counts: Mapping[str, Sequence[CaseCounts]], before: str, after: str, *, blocks: bool
) -> Iterator[str]:
    """Yield ``baseline ████░░ 60%``, ``with skill ███████ 95% (+35%)`` and the lift by student.

    Args:
        counts: Counts of the held-out cases by student.
        before: Name of the *without* side.
        after: Name of the *with* side.
        blocks: Whether the output can show block characters.
    """
    width = max(len(before), len(after))
    for student, cases in counts.items():
        yield f"{student}, held-out cases, fresh runs:"
        figures = figures_of(cases)
        gain, interval = points(figures["lift"]), Interval(figures["low"], figures["high"])
        for name, rate, change in (
            (before, figures["before"], ""),
            (after, figures["after"], f" ({gain}%)"),
        ):
            yield f"  {name:{width}}  {bar(rate, 1.0, blocks)} {percent(rate):>3}%{change}"
        yield f"  lift {gain} points {bounds(interval)}: {verdict(cases)}"


DRY_RUN = "--dry-run: nothing was requested"
"""The reason if the user wanted only the plan."""

NO_EVAL = "--no-eval: nothing was measured"
"""The reason if the user wanted a skill without cases."""

_RESUME_HINT = "everything so far is recorded: the same command continues from here"

Decision = Literal["accepted", "not shown", "refused", "stopped"]
"""What a command decided; ``not shown``: nothing showed that the proposal is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """What a command decided, and by what; the fields of ``decision.json``."""

    command: str
    decision: Decision = "stopped"
    reason: str = "interrupted"
    skill: str
    teacher: str = ""
    students: tuple[str, ...] = ()
    look: int | None = None
    """Number of the look at the hold-out; None if there was none."""
    p: float | None = None
    alpha: float | None = None
    train: tuple[str, ...] = ()
    """Ids of the cases by which the version was chosen."""
    holdout: tuple[str, ...] = ()
    """Ids of the cases that decided."""
    kept: tuple[str, ...] = ()
    """Ids of the cases that were kept or used."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Reasons by the id of a case that was dropped or left out."""
    candidates: tuple[Mapping[str, Any], ...] = ()
    """Versions of the skill that were tried: number, refusal or passes on the train cases."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Pass rates and lift on the held-out cases by student."""
    cost_usd: float = 0.0
    """Dollars that this process paid; replayed answers cost nothing."""
    asked: int = 0
    """Number of answers that this process paid for."""
    applied: bool = False
    """Whether the skill's folder was changed."""

    @property
    def ended_as_requested(self) -> bool:
        """Whether --dry-run or --no-eval left nothing to decide."""
        return self.reason in {DRY_RUN, NO_EVAL}

    def with_cases(self, cases: Sequence[Case], dropped: Mapping[str, str]) -> CommandOutcome:
        """Return the outcome with the ids of its cases, and why others were dropped."""
        train, holdout = split_cases(cases)
        return replace(
            self, train=_ids(train), holdout=_ids(holdout), kept=_ids(cases), dropped=dropped
        )


def run_and_record(
    engine: Engine,
    drafts: Drafts,
    start: CommandOutcome,
    plan: Iterable[str],
    run: Callable[[CommandOutcome], CommandOutcome],
) -> CommandOutcome:
    """Print the plan, run the command unless this is a dry run, and record its outcome.

    Args:
        engine: Prints the lines, and knows the terms and what was spent.
        drafts: The command's folder, locked while it runs.
        start: The outcome if the command is interrupted.
        plan: Lines about the most answers that the command can request.
        run: Returns the outcome, given ``start``; it may raise `Stopped`.

    Raises:
        WorkError: Another session works on the skill, or ``run`` raised it; that is recorded.
    """
    engine.say(*plan)
    if engine.terms.dry_run:
        return replace(start, reason=DRY_RUN)
    with drafts.lock():
        try:
            outcome = run(start)
        except Stopped as stopped:
            engine.say(f"stopped: {stopped}", _RESUME_HINT)
            outcome = replace(start, reason=str(stopped))
        except WorkError as error:
            _write(engine, drafts, replace(start, reason=str(error)))
            raise
        except KeyboardInterrupt:
            _write(engine, drafts, start)
            engine.say(_RESUME_HINT)
            raise
        return record(engine, drafts, outcome)


def record(engine: Engine, drafts: Drafts, outcome: CommandOutcome) -> CommandOutcome:
    """Write ``decision.json`` and print its folder, unless this is a dry run."""
    if not engine.terms.dry_run:
        outcome = _write(engine, drafts, outcome)
        engine.say(f"{outcome.decision}: {display_path(drafts.folder)}")
    return outcome


def _write(engine: Engine, drafts: Drafts, outcome: CommandOutcome) -> CommandOutcome:
    outcome = replace(
        outcome,
        teacher=engine.terms.teacher.resolved,
        students=tuple(student.resolved for student in engine.terms.students),
        cost_usd=engine.cost_usd,
        asked=engine.paid_answers,
    )
    text = json.dumps(asdict(outcome), indent=1, ensure_ascii=False)
    drafts.write("decision.json", f"{text}\n")
    return outcome


def _ids(cases: Iterable[Case]) -> tuple[str, ...]:
    return tuple(case.id for case in cases)
