"""The end of a command: whatever happens, ``decision.json`` records the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_upskill.teacher.work.decision import Decision, Drafts
from pytest_upskill.teacher.work.engine import Engine, Stopped, TeacherError
from pytest_upskill.teacher.work.place import place

DRY_RUN = "--dry-run: nothing was requested"
"""The reason of a decision that was not to be made."""

_GO_ON = "everything so far is recorded: the same command continues from here"


def conclude(
    engine: Engine,
    drafts: Drafts,
    start: Decision,
    work: Callable[[Decision], Decision],
    *,
    dry_run: bool,
) -> Decision:
    """Do the work, write its decision, and print the folder where it is.

    Args:
        engine: What has been spent.
        drafts: The folder of the work.
        start: The decision if the work is interrupted.
        work: Returns the decision, given ``start``; it may raise `Stopped`.
        dry_run: Whether nothing was to be done, so that nothing is written.
    """
    if dry_run:
        return work(start)
    with drafts.alone():
        decision = _paid(_done(engine, drafts, start, work), engine)
        drafts.decide(decision)
    engine.say(f"{decision.decision}: {place(drafts.folder)}")
    return decision


def _done(
    engine: Engine, drafts: Drafts, start: Decision, work: Callable[[Decision], Decision]
) -> Decision:
    try:
        return work(start)
    except Stopped as stopped:
        engine.say(f"stopped: {stopped}")
        engine.say(_GO_ON)
        return replace(start, decision="stopped", reason=str(stopped))
    except TeacherError as error:
        drafts.decide(_paid(replace(start, reason=str(error)), engine))
        raise
    except KeyboardInterrupt:
        drafts.decide(_paid(start, engine))
        engine.say(_GO_ON)
        raise


def _paid(decision: Decision, engine: Engine) -> Decision:
    return replace(decision, cost_usd=engine.cost_usd, asked=engine.asked)
