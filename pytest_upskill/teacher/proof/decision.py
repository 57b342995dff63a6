"""The decision of a teacher's command; whatever happens, ``decision.json`` records it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from pytest_upskill.answers.workplace import WorkError
from pytest_upskill.formats.skill import Case
from pytest_upskill.teacher.proof.holdout import split_cases
from pytest_upskill.teacher.work.drafts import Drafts
from pytest_upskill.teacher.work.engine import Engine, Stopped
from pytest_upskill.teacher.work.files import display_path

DRY_RUN = "--dry-run: nothing was requested"
"""The reason of a decision that was not to be made."""

UNMEASURED = "--no-eval: nothing was measured"
"""The reason of a decision without cases."""

_RESUME_HINT = "everything so far is recorded: the same command continues from here"

Outcome = Literal["accepted", "not shown", "refused", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome of a command; the fields of ``decision.json``."""

    command: str
    decision: Outcome = "stopped"
    reason: str = "interrupted"
    skill: str
    teacher: str = ""
    students: tuple[str, ...] = ()
    look: int | None = None
    """Number of the look at the hold-out; None if it was not looked at."""
    p: float | None = None
    alpha: float | None = None
    train: tuple[str, ...] = ()
    """Ids of the cases that the version was chosen by."""
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
    """What this process paid for; replayed answers cost nothing."""
    asked: int = 0
    """Answers that this process asked for."""
    applied: bool = False
    """Whether the skill's folder was changed."""

    def with_cases(self, cases: Sequence[Case], dropped: Mapping[str, str]) -> Decision:
        """Return the decision with the ids of its cases, and why others were dropped."""
        train, holdout = split_cases(cases)
        return replace(
            self, train=_ids(train), holdout=_ids(holdout), kept=_ids(cases), dropped=dropped
        )


def run_and_record(
    engine: Engine,
    drafts: Drafts,
    start: Decision,
    plan: Iterable[str],
    run: Callable[[Decision], Decision],
) -> Decision:
    """Print the plan, run the command unless this is a dry run, and record its decision.

    Args:
        engine: What has been spent.
        drafts: The folder of its drafts.
        start: The decision if the command is interrupted.
        plan: What will be asked at most.
        run: Returns the decision, given ``start``; it may raise `Stopped`.
    """
    engine.say(*plan)
    if engine.terms.dry_run:
        return replace(start, reason=DRY_RUN)
    with drafts.lock():
        try:
            decision = run(start)
        except Stopped as stopped:
            engine.say(f"stopped: {stopped}", _RESUME_HINT)
            decision = replace(start, reason=str(stopped))
        except WorkError as error:
            _write(engine, drafts, replace(start, reason=str(error)))
            raise
        except KeyboardInterrupt:
            _write(engine, drafts, start)
            engine.say(_RESUME_HINT)
            raise
        return record(engine, drafts, decision)


def record(engine: Engine, drafts: Drafts, decision: Decision) -> Decision:
    """Write a decision unless this is a dry run, and print the folder where it is."""
    if not engine.terms.dry_run:
        decision = _write(engine, drafts, decision)
        engine.say(f"{decision.decision}: {display_path(drafts.folder)}")
    return decision


def _write(engine: Engine, drafts: Drafts, decision: Decision) -> Decision:
    decision = replace(
        decision,
        teacher=engine.terms.teacher.resolved,
        students=tuple(student.resolved for student in engine.terms.students),
        cost_usd=engine.cost_usd,
        asked=engine.asked,
    )
    text = json.dumps(asdict(decision), indent=1, ensure_ascii=False)
    drafts.write("decision.json", f"{text}\n")
    return decision


def _ids(cases: Iterable[Case]) -> tuple[str, ...]:
    return tuple(case.id for case in cases)
