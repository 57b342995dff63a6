"""The exit code of a session: every rule that differs from pytest's own.

- 0 instead of 5 (no tests), if ``--upskill-changed-since`` or ``--upskill-shard`` deselected what
  there was to run.
- 75 instead of 0, or of 1 for errors of missing runs alone, if nothing was measured, nothing could
  be compared, or data is missing.
- 4 instead of 0, if a baseline or a report file could not be written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest

from pytest_upskill.cells.gate import NOT_MEASURED, uncompared_base
from pytest_upskill.sanitize.plural import counted
from pytest_upskill.session.collection.selection import SELECTION
from pytest_upskill.session.options.settings import SETTINGS, runs_tests
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.results.results import RESULTS
from pytest_upskill.trials.skipped import skip_reasons

_MOST_NAMES = 3
"""Maximum number of cells that a line names."""


class ExitCode:
    """Plugin that sets the exit code."""

    def __init__(self, config: pytest.Config) -> None:
        self.not_measured = False
        """Whether it is ``NOT_MEASURED``: data is missing, and nothing else failed."""
        self._config = config
        self._settings = config.stash[SETTINGS]
        self._results = config.stash[RESULTS]

    # First: later hooks print the exit status.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Set the exit status."""
        ended = session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        # pytest counts a trial without an answer, which is an error in its setup, as failed: if
        # there are no other failures, only data is missing.
        only_errors = session.testsfailed == self._results.records.trial_errors
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            selection = self._config.stash.get(SELECTION, None)
            if selection is not None and selection.may_be_empty:
                session.exitstatus = pytest.ExitCode.OK
        elif ended and only_errors and self._lacks_a_result():
            self.not_measured = True
            session.exitstatus = NOT_MEASURED
        if any(update.refused for update in self._results.baselines):
            fail_unwritten(session)

    @property
    def why_nothing_measured(self) -> str | None:
        """Why the session has no result, in one line; None if it has one or had no trial.

        Always None for a shard, which may have no result: the merged report decides.
        """
        records = self._results.records
        trials = len(records.skipped_trials)
        if records.measured or not trials or self._settings.shard or not runs_tests(self._config):
            return None
        reasons = {
            (key.path, key.skill, case): reason
            for key, cases in records.skipped.items()
            for case, reason in cases.items()
        }
        return f"{counted(trials, 'trial')} skipped: {skip_reasons(reasons.values())}"

    @property
    def uncompared_base(self) -> str | None:
        """The base of which no cell could be compared, as --upskill-compare asks; None if one was.

        Always None when baselines are updated: there may be none yet.
        """
        if self._settings.baseline_update:
            return None
        return uncompared_base(self._results.decisions)

    def lines(self, *, quiet: bool) -> Iterator[str]:
        """Yield why the exit code is ``NOT_MEASURED``, and what was not compared.

        Args:
            quiet: Whether the notes about the cells are not printed. Then each missing comparison
                is a line here, and missing data alone is none.
        """
        code = f" (exit code {NOT_MEASURED})" if self.not_measured else ""
        if self.why_nothing_measured:
            yield f"nothing was measured{code}: {self.why_nothing_measured}"
        if self.uncompared_base:
            first, *rest = self._missing_comparisons()
            more = f" (and {len(rest)} more)" if rest else ""
            yield f"nothing was compared with {self.uncompared_base}{code}: {first}{more}"
        elif quiet:
            # A missing comparison must not look like one that found no regression.
            yield from self._missing_comparisons()
        elif self.not_measured and not self.why_nothing_measured:
            yield f"exit code {NOT_MEASURED}: nothing failed, but not everything was measured"

    def _missing_comparisons(self) -> list[str]:
        """Return a line for each reason why cells were not compared, with the cells' names."""
        cell_names = defaultdict[str, list[str]](list)
        for gate in self._results.decisions:
            if gate.comparison is not None:
                for reason in gate.comparison.gaps:
                    cell_names[reason].append(gate.cell.name)
        return [f"{_list_names(names)}: {reason}" for reason, names in cell_names.items()]

    def _lacks_a_result(self) -> bool:
        if self.why_nothing_measured or self.uncompared_base is not None:
            return True
        # In a replay a missing run was not recorded: that is a failure, not missing data.
        return self._settings.cache_mode != "replay" and self._misses_data()

    def _misses_data(self) -> bool:
        if self._results.records.trial_errors or self._config.stash[RESOURCES].budget.stopped:
            return True
        return any(gate.misses_data for gate in self._results.decisions)


def _list_names(names: Sequence[str]) -> str:
    """Return the first names and how many more there are."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def fail_unwritten(session: pytest.Session) -> None:
    """Set the exit status, if it is OK, to that of a file which could not be written."""
    session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR
