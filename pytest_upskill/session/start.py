"""The plugins of a session with chosen models."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from pytest_upskill.report.files.github import in_github_actions
from pytest_upskill.session.answers.one_process import FetchedAnswers
from pytest_upskill.session.collection.catalogues import catalogues_of
from pytest_upskill.session.collection.items import ANSWERS, TrialReports
from pytest_upskill.session.options.settings import SETTINGS, Settings
from pytest_upskill.session.output.allure import AllureGates
from pytest_upskill.session.output.hints import Hints
from pytest_upskill.session.output.junit import JUnit
from pytest_upskill.session.output.outgoing import Outgoing, redacted_logs
from pytest_upskill.session.output.repeated_errors import RepeatedErrors
from pytest_upskill.session.output.spending import Spending
from pytest_upskill.session.output.terminal import Terminal
from pytest_upskill.session.plugin_hooks import languages_of
from pytest_upskill.session.resources import RESOURCES, make_resources
from pytest_upskill.session.results.exit_code import ExitCode
from pytest_upskill.session.results.results import Results


def start(config: pytest.Config) -> None:
    """Read the settings and register the plugins that this process needs.

    Raises:
        pytest.UsageError: The value of an option is invalid, or a plugin's hook fails.
    """
    settings = config.stash[SETTINGS] = Settings.from_config(config)
    languages = languages_of(config)
    config.stash[RESOURCES] = make_resources(config, settings, languages)
    catalogues_of(config)
    plugins = config.pluginmanager
    plugins.register(TrialReports(), "upskill-reports")
    _redact_output(config)
    plugins.register(Hints(config), "upskill-hints")
    if settings.changed_since is not None:
        from pytest_upskill.session.collection.changed_since import ChangedSince

        changed = ChangedSince(config, settings.changed_since, settings.project)
        plugins.register(changed, "upskill-changed-since")
    if settings.shard is not None:
        from pytest_upskill.session.collection.shard import Shard

        plugins.register(Shard(config, *settings.shard), "upskill-shard")
    if hasattr(config, "workerinput"):
        from pytest_upskill.session.answers.xdist import HandedAnswers

        answers = config.stash[ANSWERS] = HandedAnswers(config.workerinput["upskill"])
        plugins.register(answers, "upskill-answers")
        return
    _report_results(config, settings)


def _report_results(config: pytest.Config, settings: Settings) -> None:
    """Register the plugins of the process that reports: the only one, or the controller."""
    plugins = config.pluginmanager
    results = Results(config, settings)
    plugins.register(results, "upskill-results")
    exit_code = ExitCode(config, settings, results)
    plugins.register(exit_code, "upskill-exit-code")
    plugins.register(Terminal(settings, results, exit_code), "upskill-terminal")
    plugins.register(RepeatedErrors(config), "upskill-repeats")
    if config.getoption("tbstyle", "auto") == "line":
        from pytest_upskill.session.output.tb_line import OneLineFailures

        plugins.register(OneLineFailures(), "upskill-tb-line")
    plugins.register(AllureGates(config, results), "upskill-allure")
    plugins.register(JUnit(config, settings.junit_properties, results), "upskill-junit")
    if settings.makes_files or settings.cache_mode == "replay" or in_github_actions(os.environ):
        from pytest_upskill.session.output.report_files import Files

        plugins.register(Files(config, settings, results), "upskill-files")
    spending = Spending(config, settings, results)
    plugins.register(spending, "upskill-spending")
    if settings.prune:
        from pytest_upskill.session.without_tests.prune import Prune

        plugins.register(Prune(config, dry_run=settings.dry_run), "upskill-prune")
    elif config.getoption("dist", "no") == "no":
        own = config.stash[ANSWERS] = FetchedAnswers(config, spending)
        plugins.register(own, "upskill-answers")
    else:
        from pytest_upskill.session.answers.xdist import Controller

        plugins.register(Controller(config, spending), "upskill-controller")


def _redact_output(config: pytest.Config) -> None:
    """Redact keys in reports and logs until the session ends."""
    redactor = config.stash[RESOURCES].redactor
    config.pluginmanager.register(Outgoing(redactor), "upskill-outgoing")
    logs = ExitStack()
    logs.enter_context(redacted_logs(redactor))
    config.add_cleanup(logs.close)
