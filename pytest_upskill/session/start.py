"""A session with chosen models, step by step.

1. Collect: `SkillFile` makes the items, `Selection` deselects some, in every process that collects.
2. Plan and fetch: `FetchedAnswers`, or under pytest-xdist `Controller` and in a worker
   `HandedAnswers`, checks that all answers can be had, and fetches them while the items wait.
3. Decide and report: `Reporting`, in the process that reports.

`Outgoing` attaches the results to reports and cleans all text that leaves.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from pytest_upskill.session.case_files import catalogues_of
from pytest_upskill.session.fetching import FetchedAnswers
from pytest_upskill.session.items import ANSWERS
from pytest_upskill.session.outgoing import Outgoing, redacted_logs
from pytest_upskill.session.progress import interruptible
from pytest_upskill.session.report_files import Files, JUnit
from pytest_upskill.session.resources import set_up
from pytest_upskill.session.results import Results
from pytest_upskill.session.selection import Selection
from pytest_upskill.session.terminal import Terminal

if TYPE_CHECKING:
    from pytest_upskill.session.xdist import Controller


def start(config: pytest.Config) -> None:
    """Read the settings and register the plugins that this process needs.

    Raises:
        pytest.UsageError: The value of an option is invalid, or a plugin's hook fails.
    """
    settings, resources = set_up(config)
    catalogues_of(config)  # a bad file ends the run before it begins
    plugins = config.pluginmanager
    plugins.register(Outgoing(resources.redactor), "upskill-outgoing")
    logs = ExitStack()
    logs.enter_context(redacted_logs(resources.redactor))
    config.add_cleanup(logs.close)
    selection = Selection(config)
    plugins.register(selection, "upskill-selection")
    if hasattr(config, "workerinput"):
        from pytest_upskill.session.xdist import HandedAnswers

        handed = HandedAnswers(config.workerinput["upskill"])
        config.stash[ANSWERS] = handed.wait_for_answers
        plugins.register(handed, "upskill-answers")
        return
    answers: FetchedAnswers | Controller | None = None
    if settings.prune:
        from pytest_upskill.session.without_tests import Prune

        plugins.register(Prune(config, dry_run=settings.dry_run), "upskill-prune")
    elif config.getoption("dist", "no") == "no":
        answers = FetchedAnswers(config)
        config.stash[ANSWERS] = answers.wait_for_answers
    else:
        from pytest_upskill.session.xdist import Controller

        answers = Controller(config)
    if answers is not None:
        plugins.register(answers, "upskill-answers")
    plugins.register(Reporting(config, selection, answers), "upskill-reporting")


class Reporting:
    """Plugin of the process that reports: the only one, or the controller of pytest-xdist."""

    def __init__(
        self,
        config: pytest.Config,
        selection: Selection,
        answers: FetchedAnswers | Controller | None,
    ) -> None:
        self._answers = answers
        self._results = Results(config, selection)
        self._terminal = Terminal(config, self._results)
        self._junit = JUnit(config)
        self._files = Files(config)

    def pytest_report_header(self) -> list[str]:
        """Return the models and the number of runs."""
        return self._terminal.header()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record that a file could not be collected."""
        self._results.collection_failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> object:
        """Return letters and words of our own for baselines and repeated errors."""
        return self._terminal.status(report)

    # First: pytest's writer of JUnit XML drops a test after its teardown report.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a trial's result."""
        self._results.records.add(report)
        self._junit.add_answers(report)

    # Last, so innermost: gates are reported before the terminal ends its progress line.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the last test stop fetching, then decide; also after -x or Ctrl-C."""
        try:
            with interruptible():
                return (yield)
        finally:
            if self._answers is not None:
                self._answers.stop()
            self._results.finish(session)

    # First: pytest's own plugins write JUnit XML, print failures and the exit status in this hook.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Complete JUnit XML, set the exit status, and write the report files."""
        self._junit.add_figures(self._results.reported)
        self._results.decide_exit_code(session)
        self._terminal.shorten_failures()
        if self._results.report is not None:
            self._files.write(self._results.report, session, exitstatus)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print what was found, and what it cost."""
        self._files.print_names(terminalreporter)
        self._terminal.print_results(terminalreporter)
        self._terminal.print_costs(terminalreporter, exitstatus)
