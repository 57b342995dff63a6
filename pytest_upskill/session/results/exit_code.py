"""The exit code of a session in which nothing failed, but not everything was measured."""

from __future__ import annotations

import pytest

from pytest_upskill.cells.gate import NOT_MEASURED, compares_nothing
from pytest_upskill.session.options.settings import Settings, runs_tests
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.results.results import Results
from pytest_upskill.trials.skipped import skip_reasons


class ExitCode:
    """Plugin that sets the exit code if data is missing or a baseline could not be written."""

    def __init__(self, config: pytest.Config, settings: Settings, results: Results) -> None:
        self.not_measured = False
        """Whether it is ``NOT_MEASURED``: data is missing, and nothing else failed."""
        self._config = config
        self._settings = settings
        self._results = results

    # First: later hooks print the exit status.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Set the exit status."""
        ended = session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        nothing_failed = session.testsfailed == self._results.records.unmeasured
        if ended and nothing_failed and self._lacks_a_result():
            self.not_measured = True
            session.exitstatus = NOT_MEASURED
        if any(update.refused for update in self._results.baselines):
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR

    @property
    def nothing_measured(self) -> str:
        """Why the session has no result, in one line; empty if it has one or had no trial.

        Always empty for a shard, which may have no result: the merged report decides.
        """
        records = self._results.records
        trials = len(records.skipped_trials)
        if records.trials or not trials or self._settings.shard or not runs_tests(self._config):
            return ""
        reasons = {
            (path, skill, case): reason
            for (path, skill, _, _), cases in records.skipped.items()
            for case, reason in cases.items()
        }
        skipped = "1 trial" if trials == 1 else f"{trials} trials"
        return f"{skipped} skipped: {skip_reasons(reasons.values())}"

    @property
    def compares_nothing(self) -> str | None:
        """What no cell could be compared with, though --upskill-compare is set; None if one was.

        Always None when baselines are updated: there may be none yet.
        """
        if self._settings.baseline_update:
            return None
        return compares_nothing(self._results.decisions)

    def _lacks_a_result(self) -> bool:
        if self.nothing_measured or self.compares_nothing is not None:
            return True
        # In a replay a missing run was not recorded: that is a failure, not missing data.
        return self._settings.cache_mode != "replay" and self._misses_data()

    def _misses_data(self) -> bool:
        if self._results.records.unmeasured or self._config.stash[RESOURCES].budget.stopped:
            return True
        return any(gate.misses_data for gate in self._results.decisions)
