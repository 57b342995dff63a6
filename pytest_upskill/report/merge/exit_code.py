"""What a report comes to: the exit code that one run of all of it would have had, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pytest_upskill.cells.gate import compares_nothing
from pytest_upskill.report.files.document import Report, Session
from pytest_upskill.result import TrialResult

Outcome = Literal["failed", "undecided", "passed"]
_SHARE = re.compile(r"(\d{1,4})/(\d{1,4})")


def outcome(report: Report) -> Outcome:
    """Tell whether anything is red, else whether anything is open."""
    gates = {gate.outcome for gate in report.gates}
    if failed_trials(report) or "failed" in gates:
        return "failed"
    if unmeasured_trials(report) or missing_shares(report) or cut_short(report):
        return "undecided"
    open_ = gates != {"passed"} or compares_nothing(report.gates)
    return "undecided" if open_ else "passed"


def failed_trials(report: Report) -> list[tuple[str, TrialResult]]:
    """List what failed, by node id: too few runs passed, or a replay had no recording."""
    return [
        (nodeid, trial)
        for nodeid, trial in _trials(report)
        if (trial.arm == "with_skill" and trial.settled and not trial.passed)
        or (trial.errors and _replayed(report))
    ]


def unmeasured_trials(report: Report) -> list[tuple[str, TrialResult]]:
    """List those, by node id, of which so many runs are missing that they could be either."""
    return [
        (nodeid, trial)
        for nodeid, trial in _trials(report)
        if not trial.settled and trial.errors and not _replayed(report)
    ]


def missing_shares(report: Report) -> list[str]:
    """Name the shares, such as ``3/4``, of which there is no report."""
    there: dict[tuple[tuple[str, ...], int], set[int]] = {}
    for session in report.sessions:
        if share := _SHARE.fullmatch(str(session.options.get("shard"))):
            run = tuple(session.models.values()), int(share[2])
            there.setdefault(run, set()).add(int(share[1]))
    return [
        f"{number}/{shares}"
        for (_, shares), numbers in there.items()
        for number in range(1, shares + 1)
        if number not in numbers
    ]


def cut_short(report: Report) -> list[Session]:
    """List the runs that did not get to everything."""
    return [session for session in report.sessions if not session.complete]


def _trials(report: Report) -> Iterator[tuple[str, TrialResult]]:
    for cell in report.cells:
        for trial in cell.trials:
            yield f"{cell.path}::{trial.case}[{trial.model}-{trial.arm}]", trial


def _replayed(report: Report) -> bool:
    """Tell whether recordings were to vouch for every run."""
    return any(session.options.get("cache") == "replay" for session in report.sessions)
