"""The outcome of a merged report, the same as of a single session, and the reasons for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pytest_upskill.cells.gate import uncompared_base
from pytest_upskill.report.document import Report, Session
from pytest_upskill.trials.result import TrialResult

Outcome = Literal["failed", "undecided", "passed"]
_SHARD = re.compile(r"(\d{1,4})/(\d{1,4})")


def outcome(report: Report) -> Outcome:
    """Return whether anything failed, else whether anything is undecided."""
    gates = {gate.outcome for gate in report.gates}
    gates |= {gate.outcome for gate in report.trigger_gates if not gate.cell.by_words}
    if failed_trials(report) or "failed" in gates:
        return "failed"
    if unmeasured_trials(report) or missing_shards(report) or cut_short(report):
        return "undecided"
    # Where offline alone chose among skills, there is nothing to decide.
    only_by_words = bool(report.trigger_gates) and not gates
    if gates != {"passed"} and not only_by_words:
        return "undecided"
    return "undecided" if uncompared_base(report.decisions) else "passed"


def failed_trials(report: Report) -> list[tuple[str, TrialResult]]:
    """Return failed trials with node ids: too few runs passed, or a replay had no recording."""
    return [
        (nodeid, trial)
        for nodeid, trial in _trials(report)
        if (trial.decides and trial.settled and not trial.passed)
        or (trial.errors and _is_replay(report))
    ]


def unmeasured_trials(report: Report) -> list[tuple[str, TrialResult]]:
    """Return, with node ids, the trials that the missing runs could make pass or fail."""
    return [
        (nodeid, trial)
        for nodeid, trial in _trials(report)
        if not trial.settled and trial.errors and not _is_replay(report)
    ]


def missing_shards(report: Report) -> list[str]:
    """Return the shards, such as ``3/4``, that have no report."""
    present: dict[tuple[tuple[str, ...], int], set[int]] = {}
    for session in report.sessions:
        if shard := _SHARD.fullmatch(str(session.options.get("shard"))):
            run = tuple(session.models.values()), int(shard[2])
            present.setdefault(run, set()).add(int(shard[1]))
    return [
        f"{number}/{shards}"
        for (_, shards), numbers in present.items()
        for number in range(1, shards + 1)
        if number not in numbers
    ]


def cut_short(report: Report) -> list[Session]:
    """Return the sessions that are incomplete."""
    return [session for session in report.sessions if not session.complete]


def _trials(report: Report) -> Iterator[tuple[str, TrialResult]]:
    for cell in report.all_cells:
        for trial in cell.trials:
            yield f"{cell.path}::{trial.case}[{trial.model}-{trial.arm}]", trial


def _is_replay(report: Report) -> bool:
    """Return whether a session replayed, so that every run must have a recording."""
    return any(session.options.get("cache") == "replay" for session in report.sessions)
