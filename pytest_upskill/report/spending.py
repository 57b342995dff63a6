"""What a run will ask for, said before; and what it cost, said after."""

from __future__ import annotations

import pytest

from pytest_upskill.fetching import RESOURCES
from pytest_upskill.forecast import Forecast
from pytest_upskill.ledger import Ledger
from pytest_upskill.results import RunResult
from pytest_upskill.settings import Settings

NOT_MEASURED = 75
"""Exit code of a run that is not red but could not measure everything: EX_TEMPFAIL."""


class Spending:
    """Speaks of money in the process that asks the models."""

    def __init__(self, config: pytest.Config, settings: Settings, ledger: Ledger) -> None:
        self.forecast: Forecast | None = None
        self._config = config
        self._settings = settings
        self._ledger = ledger

    def pytest_report_collectionfinish(self) -> str | None:
        """Say what will be asked for, unless that is nothing."""
        # Unlike the header, pytest prints what this returns with -q too.
        quiet = self._config.get_verbosity() < 0 and not self._settings.dry_run
        if quiet or self.forecast is None or self.forecast.trials == 0:
            return None
        return _plan(self.forecast)

    def announce(self) -> None:
        """Say the same where the process that asks does not collect."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and (line := self.pytest_report_collectionfinish()) is not None:
            reporter.write_line(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool | None:
        """Run nothing in a dry run."""
        return True if self._settings.dry_run else None

    # Last: under the table of what was measured.
    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Say what the answers cost, and which recordings were of no use."""
        if config.get_verbosity() < 0:
            return
        runs = [run for cell in self._ledger.cells for trial in cell.trials for run in trial.runs]
        if any(run.completion.served_model != "offline" for run in runs):
            terminalreporter.line(_spent(runs))
        for problem in config.stash[RESOURCES].cache.problems:
            terminalreporter.line(f"cache: {problem}", yellow=True)

    # First: what comes later prints the status.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell CI by the exit code where the budget kept something from being measured."""
        budget = self._config.stash[RESOURCES].budget
        if budget.refused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = NOT_MEASURED


def _plan(ahead: Forecast) -> str:
    """Say how much there is to do: ``90 trials: 90 answers, 40 recorded, 50 to ask for, …``."""
    plan = f"upskill: {ahead.trials} trials, {ahead.runs} answers: {ahead.recorded} recorded, "
    plan += f"{ahead.to_send} to ask for"
    if ahead.to_send == 0 or all(model.provider == "offline" for model in ahead.models):
        return plan
    most = "n/a" if ahead.most_usd is None else f"${ahead.most_usd:.2f}"
    return f"{plan}, at most {ahead.most_tokens:,} output tokens and {most}"


def _spent(runs: list[RunResult]) -> str:
    """Say what was paid in this run and what the replayed answers had cost."""
    asked = [run for run in runs if not run.completion.replayed]
    replayed = [run for run in runs if run.completion.replayed]
    line = f"asked for {len(asked)} answers: {_dollars(asked)}"
    return (
        f"{line}; replayed {len(replayed)}, recorded at {_dollars(replayed)}" if replayed else line
    )


def _dollars(runs: list[RunResult]) -> str:
    costs = [run.completion.cost_usd for run in runs]
    known = [cost for cost in costs if cost is not None]
    return f"${sum(known):.4f}" if len(known) == len(costs) else "cost n/a"
