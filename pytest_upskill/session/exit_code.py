"""The exit code of a session, and the report value that decides it.

Where tests ran, `report.outcome` decides, as it does for merged reports. Only files that could not
be written are decided here: 4 instead of 0.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pytest

from pytest_upskill.figures.gate import NOT_MEASURED
from pytest_upskill.report.document import Report, Session
from pytest_upskill.report.outcome import (
    EXIT_CODES,
    missing_comparisons,
    outcome,
    uncompared_base,
    why_undecided,
)
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.results import Results, unmeasured_skills
from pytest_upskill.session.selection import Selection
from pytest_upskill.session.settings import SETTINGS, Settings, runs_tests

_RAN_TO_THE_END = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
"""Other codes come from Ctrl-C, from pytest.exit() and from errors."""


class ExitCode:
    """The exit code, and the report that it follows from."""

    def __init__(self, config: pytest.Config, results: Results, selection: Selection) -> None:
        self.report: Report | None = None
        """The session as a value; None before its end, and where no test was to run."""
        self._config = config
        self._settings = config.stash[SETTINGS]
        self._results = results
        self._selection = selection
        self._is_part = self._settings.shard is not None
        self._was_interrupted = False

    def decide(self, session: pytest.Session) -> None:
        """Set the exit status."""
        if runs_tests(self._config) and not (self._settings.dry_run or self._settings.prune):
            self.report = self._make_report(session)
            self._was_interrupted = session.exitstatus not in _RAN_TO_THE_END
            if not self._was_interrupted:
                session.exitstatus = self._status(self.report)
        if any(update.refused for update in self._results.baselines):
            fail_unwritten(session)

    def lines(self, *, quiet: bool) -> Iterator[str]:
        """Yield why nothing or not everything was measured, and what was not compared.

        Args:
            quiet: Whether the notes about the cells are not printed. Then each missing comparison
                is a line here, as it must not look like one that found no regression.
        """
        if self.report is None or self._was_interrupted:
            return  # pytest says why
        code = ""
        if outcome(self.report, is_part=self._is_part) == "undecided":
            code = f"exit code {NOT_MEASURED}: "
        # pytest prints the errors, with -qq too.
        names_error = self._config.getoption("tbstyle", "auto") == "no"
        for reason in why_undecided(self.report, is_part=self._is_part, names_error=names_error):
            yield f"{code}{reason}"
        if quiet and uncompared_base(self.report) is None:
            yield from missing_comparisons(self.report)

    def _status(self, report: Report) -> int:
        found = outcome(report, is_part=self._is_part)
        if found == "empty" and self._selection.may_be_empty:
            return pytest.ExitCode.OK  # the cases of this skill are all in other shards
        return EXIT_CODES[found]

    def _make_report(self, session: pytest.Session) -> Report:
        records = self._results.records
        stopped = (
            session.exitstatus not in _RAN_TO_THE_END
            or session.shouldfail
            or self._config.stash[RESOURCES].budget.stopped
        )
        compares = self._settings.ref is not None or self._settings.changed_since is not None
        made = Session(
            date=datetime.now(UTC).replace(microsecond=0),
            versions={
                "pytest-upskill": version("pytest-upskill"),
                "pytest": version("pytest"),
                "python": platform.python_version(),
            },
            models={model.label: model.resolved for model in self._settings.models},
            options=_options(self._settings),
            complete=not (stopped or self._results.collection_failed),
            unmeasured=tuple(unmeasured_skills(records)),
            other_tests=records.other_tests,
            # Failures that have no report count too, such as too little coverage.
            other_failures=max(0, session.testsfailed - records.failures),
            without_trials=tuple(self._selection.without_trials()) if compares else (),
            nothing_changed=self._selection.nothing_changed,
        )
        return Report(sessions=(made,), gates=tuple(self._results.gates))


def _options(settings: Settings) -> dict[str, Any]:
    """Return the options that a report shows, by name."""
    return {
        "runs": settings.runs,
        "min_pass_rate": settings.min_pass_rate,
        "min_mean_pass_rate": settings.thresholds.min_mean_pass_rate,
        "min_lift": settings.thresholds.min_lift,
        "min_recall": settings.thresholds.min_recall,
        "max_false_triggers": settings.thresholds.max_false_triggers,
        "fail_on": sorted(settings.thresholds.fail_on),
        "max_tokens": settings.max_tokens,
        "params": [
            f"{model.label}:{entry}"
            for model in settings.models
            for entry in model.parameters.entries
        ],
        "compare": settings.compare,
        "baseline_update": settings.baseline_update or None,
        "judge": settings.judge.resolved if settings.judge else None,
        "cache": settings.cache_mode,
        "shard": "/".join(map(str, settings.shard)) if settings.shard else None,
    }


def fail_unwritten(session: pytest.Session) -> None:
    """Set the exit status, if it is OK, to that of a file which could not be written."""
    session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR
