"""The plugins of a session with chosen models.

What happens after the last test, in this order, and the hook that does it:

1. `FetchedAnswers`, or `Controller` under pytest-xdist, stops fetching: `pytest_runtestloop`, a
   wrapper with trylast.
2. `Results` makes cells, decides their gates and reports them as tests: in the same hook, also a
   trylast wrapper. Of two such wrappers, the one that is registered later ends first. So `Results`
   is registered before the plugin of step 1.
3. `JUnit` adds properties, and `ExitCode` sets the exit code: `pytest_sessionfinish`, tryfirst.
4. `Files` writes reports: `pytest_sessionfinish`, after those with tryfirst.
5. `Terminal` prints: `pytest_terminal_summary`.
6. `Spending` prints: `pytest_terminal_summary`, trylast.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from pytest_upskill.report.files.github import in_github_actions
from pytest_upskill.session.case_files import check_catalogue
from pytest_upskill.session.exit_code import ExitCode
from pytest_upskill.session.failures import ShorterFailures
from pytest_upskill.session.fetching import FetchedAnswers
from pytest_upskill.session.items import ANSWERS, TrialReports
from pytest_upskill.session.outgoing import Outgoing, redacted_logs
from pytest_upskill.session.report_files import JUnit
from pytest_upskill.session.resources import set_up
from pytest_upskill.session.results import RESULTS, Results
from pytest_upskill.session.selection import SELECTION, Hints, Selection
from pytest_upskill.session.settings import SETTINGS
from pytest_upskill.session.terminal import Spending, Terminal


def start(config: pytest.Config) -> None:
    """Read the settings and register the plugins that this process needs.

    Raises:
        pytest.UsageError: The value of an option is invalid, or a plugin's hook fails.
    """
    settings, resources = set_up(config)
    check_catalogue(config)
    plugins = config.pluginmanager
    plugins.register(TrialReports(), "upskill-reports")
    plugins.register(Outgoing(resources.redactor), "upskill-outgoing")
    logs = ExitStack()
    logs.enter_context(redacted_logs(resources.redactor))
    config.add_cleanup(logs.close)
    hints = Hints(config)
    plugins.register(hints, "upskill-hints")
    if settings.changed_since is not None or settings.shard is not None:
        selection = config.stash[SELECTION] = Selection(config)
        plugins.register(selection, "upskill-selection")
    if hasattr(config, "workerinput"):
        from pytest_upskill.session.xdist import HandedAnswers

        handed = HandedAnswers(config.workerinput["upskill"])
        config.stash[ANSWERS] = handed.wait_for_answers
        plugins.register(handed, "upskill-answers")
        return
    _report_results(config, hints)  # before the answers: see the order above
    if settings.prune:
        from pytest_upskill.session.without_tests import Prune

        plugins.register(Prune(config, dry_run=settings.dry_run), "upskill-prune")
    elif config.getoption("dist", "no") == "no":
        fetched = FetchedAnswers(config)
        config.stash[ANSWERS] = fetched.wait_for_answers
        plugins.register(fetched, "upskill-answers")
    else:
        from pytest_upskill.session.xdist import Controller

        plugins.register(Controller(config), "upskill-controller")


def _report_results(config: pytest.Config, hints: Hints) -> None:
    """Register the plugins of the process that reports: the only one, or the controller."""
    plugins, settings = config.pluginmanager, config.stash[SETTINGS]
    results = config.stash[RESULTS] = Results(config)
    plugins.register(results, "upskill-results")
    exit_code = ExitCode(config, hints.without_cases)
    plugins.register(exit_code, "upskill-exit-code")
    plugins.register(Terminal(config, exit_code), "upskill-terminal")
    plugins.register(ShorterFailures(config), "upskill-failures")
    plugins.register(JUnit(config), "upskill-junit")
    if settings.makes_files or settings.cache_mode == "replay" or in_github_actions(os.environ):
        from pytest_upskill.session.report_files import Files

        plugins.register(Files(config, exit_code), "upskill-files")
    plugins.register(Spending(config), "upskill-spending")
