"""How a session ended: its exit code, and the reasons for it.

A session and the command that merges reports both decide here, so the report of a session leads to
the exit code of the session.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal

from pytest_upskill.figures.comparison import note_of_changes
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import agreeing, counted, listed, without_numbers
from pytest_upskill.report.document import Report, Session
from pytest_upskill.trials.needs import reasons_of, skip_lines
from pytest_upskill.trials.result import TrialResult

Outcome = Literal["failed", "undecided", "empty", "passed"]

NOT_MEASURED = 75
"""Exit code (EX_TEMPFAIL) if data is missing and nothing failed."""

EXIT_CODES: Mapping[Outcome, int] = {
    "passed": 0,
    "failed": 1,
    "empty": 5,
    "undecided": NOT_MEASURED,
}
"""Exit codes, those of pytest and one more."""


def outcome(report: Report) -> Outcome:
    """Return whether anything failed, else whether anything is undecided."""
    has_failed = any(trial.failed for trial in report.trials) or unrecorded_trials(report)
    if report.failed_gates or has_failed or any(map(_others_failed, report.sessions)):
        return "failed"
    if any(why_undecided(report)):
        return "undecided"
    # Where no test ran, there should have been some, unless no skill changed.
    ran = report.gates or report.unmeasured_skills or _needs_no_trial(report)
    return "passed" if ran else "empty"


def why_undecided(report: Report, *, in_its_run: bool = False) -> Iterator[str]:
    """Yield why nothing or not everything was measured, one line for each reason.

    Args:
        report: The report.
        in_its_run: Whether a run prints them itself. Its output says already that it was stopped,
            and which files could not be read.
    """
    measured = {gate.cell.path for gate in report.gates}
    changed = (each for each in report.unmeasured_skills if each.is_changed)
    if not any(trial.planned for trial in report.trials) and (why := _why_nothing(report)):
        yield f"nothing was measured: {why}"
    elif missed := [each for each in changed if each.path not in measured]:
        names = listed([each.skill for each in missed])
        reasons = "; ".join(skip_lines(reasons_of(missed)))
        yield f"nothing was measured of what changed in {names}: {reasons}"
    yield from (line for session in report.sessions for line in session.not_measured)
    if base := uncompared_base(report):
        yield f"nothing was compared with {base}: {listed(missing_comparisons(report), 1)}"
    # A replay fails without its recordings; otherwise missing runs could make a trial pass or fail.
    trials = [] if report.is_replay else report.trials
    errors = [trial.errors[0] for trial in trials if trial.errors and not trial.settled]
    by_cause = grouped((without_numbers(error), error) for error in errors)
    frequent = sorted(by_cause.values(), key=len, reverse=True)
    for alike in frequent[:3]:
        yield f"{counted(len(alike), 'trial')} not measured: {alike[0]}"
    if others := sum(map(len, frequent[3:])):
        yield f"{counted(others, 'trial')} not measured for other reasons"
    if (
        not errors
        and not unrecorded_trials(report)
        and (gates := [gate for gate in report.gates if gate.misses_data])
    ):
        yield f"{gates[0].cell.name}: {gates[0].text}"
    for session in (each for each in report.sessions if not (each.complete or in_its_run)):
        run = f"the run of {session.date:%Y-%m-%d %H:%M} UTC"
        if not (session.unreadable or session.not_measured):
            yield f"not everything ran: see the output of {run}"
        yield from session.unreadable


def _why_nothing(report: Report) -> str:
    """Return why no trial of a session was measured; empty if none was expected."""
    if skills := report.unmeasured_skills:
        return "; ".join(skip_lines(reasons_of(skills)))
    return "" if _needs_no_trial(report) else without_cases(report)


def _needs_no_trial(report: Report) -> bool:
    return any(session.other_tests or session.nothing_changed for session in report.sessions)


def without_cases(report: Report) -> str:
    """Return how many changed skills have no cases, or some that did not run; empty for none."""
    skills = sum(session.without_cases for session in report.sessions)
    subject = f"{counted(skills, 'changed skill')} {agreeing('is', skills)}"
    return f"{subject} not fully measured" if skills else ""


def _others_failed(session: Session) -> bool:
    """Return whether more failed than trials and gates: tests, files, skills without cases."""
    fail_on = session.options.get("fail_on")
    lacking = isinstance(fail_on, list) and "cases" in fail_on and session.without_cases
    return bool(session.other_failures or session.unreadable or lacking)


def uncompared_base(report: Report) -> str | None:
    """Return what the cells should be compared with if no comparison was possible, else None.

    A skill that is new or unchanged since a git ref needs no comparison. Where there are lifts,
    they decide: the first trigger cases of a project have no baseline yet.
    """
    families = ([gate.comparison for gate in of] for of in (report.lifts, report.triggers))
    compared = [each for each in next(filter(any, families), []) if each]
    return compared[0].base if compared and all(each.lacking for each in compared) else None


def missing_comparisons(report: Report) -> list[str]:
    """Return a line for each reason why cells were not compared, with the cells' names."""
    cell_names = defaultdict[str, list[str]](list)
    for gate in report.gates:
        past = gate.comparison
        # A skill that is new or unchanged needs no comparison, but its cases may have changed.
        needed = past is not None and (past.cases or past.lacking)
        for reason in past.notes if past else ():
            if needed or reason == note_of_changes(gate.cell):
                cell_names[reason].append(gate.cell.name)
    return [f"{listed(names)}: {reason}" for reason, names in cell_names.items()]


def unrecorded_trials(report: Report) -> list[TrialResult]:
    """Return the trials for which a replay had no recording."""
    trials = report.trials if report.is_replay else []
    return [trial for trial in trials if trial.errors and not trial.failed]
