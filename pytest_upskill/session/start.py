"""The plugins of a session with chosen models, and fetching in a session without workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_upskill.completions.cache import Cache
from pytest_upskill.completions.resources import AgentRunner, Bill, Resources
from pytest_upskill.completions.service import Service
from pytest_upskill.grading.grade import Answer
from pytest_upskill.providers.keys import secrets
from pytest_upskill.sandbox.levels import Level
from pytest_upskill.sanitize.redaction import Redactor
from pytest_upskill.session.answers.hosts import RESOURCES
from pytest_upskill.session.answers.preflight import (
    Prepared,
    prepare,
    runs_tests,
    start_service,
    stop_service,
)
from pytest_upskill.session.collection.items import ANSWERS, TrialItem, TrialReports, wanted
from pytest_upskill.session.options.settings import SETTINGS, Settings
from pytest_upskill.session.output.allure import AllureGates
from pytest_upskill.session.output.hints import Hints
from pytest_upskill.session.output.junit import JUnit
from pytest_upskill.session.output.outgoing import Outgoing, redacted_logs
from pytest_upskill.session.output.progress import Progress
from pytest_upskill.session.output.repeated_errors import RepeatedErrors
from pytest_upskill.session.output.report_files import Files
from pytest_upskill.session.output.spending import Spending
from pytest_upskill.session.output.terminal import Terminal
from pytest_upskill.session.plugin_hooks import languages_of
from pytest_upskill.session.results.results import Results
from pytest_upskill.session.without_tests.catalogue_update import catalogues_of
from pytest_upskill.spending.budget import Budget
from pytest_upskill.spending.in_flight import InFlight
from pytest_upskill.spending.prices import Prices

if TYPE_CHECKING:
    from pytest_upskill.compile import Compilers, Language
    from pytest_upskill.sandbox.run import Sandbox


AGENTS_LIMIT = 5.0
"""Dollars that a run with agents may cost if ``--upskill-max-cost`` sets no other limit."""


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
    ledger = Results(config, settings)
    plugins.register(ledger, "upskill-ledger")
    plugins.register(Terminal(settings, ledger), "upskill-terminal")
    plugins.register(RepeatedErrors(config), "upskill-repeats")
    if config.getoption("tbstyle") == "line":
        from pytest_upskill.session.output.tb_line import OneLineFailures

        plugins.register(OneLineFailures(), "upskill-tb-line")
    plugins.register(AllureGates(config, ledger), "upskill-allure")
    plugins.register(JUnit(config, settings.junit_properties, ledger), "upskill-junit")
    plugins.register(Files(config, settings, ledger), "upskill-files")
    spending = Spending(config, settings, ledger)
    plugins.register(spending, "upskill-spending")
    if settings.prune:
        from pytest_upskill.session.without_tests.prune import Prune

        plugins.register(Prune(config, dry_run=settings.dry_run), "upskill-prune")
    elif config.getoption("dist", "no") == "no":
        own = config.stash[ANSWERS] = OwnAnswers(config, spending)
        plugins.register(own, "upskill-answers")
    else:
        from pytest_upskill.session.answers.xdist import Controller

        plugins.register(Controller(config, spending), "upskill-controller")


def make_resources(
    config: pytest.Config, settings: Settings, languages: tuple[Language, ...]
) -> Resources:
    """Make what a session has one of each of.

    Args:
        config: Config of this process.
        settings: Values of all options.
        languages: What plugins add to the built-in languages.
    """
    prices = Prices(settings.prices)
    limit = settings.max_cost
    if limit is None and _costly(settings, prices):
        limit = AGENTS_LIMIT
    sandbox = cache(partial(_agent_sandbox, settings.sandbox))
    return Resources(
        cache=Cache(settings.cache_dir, settings.cache_mode, hidden=settings.cache_hidden),
        languages=languages,
        compilers=cache(partial(_compilers, config, settings.sandbox, languages)),
        agent_sandbox=sandbox,
        agents=partial(_agent_runner, sandbox, settings.concurrency),
        prices=prices,
        budget=Budget(limit),
        activity=InFlight(),
        bill=Bill(),
        redactor=Redactor(secrets(settings.asked, os.environ)),
    )


def _redact_output(config: pytest.Config) -> None:
    """Redact keys in reports and logs until the session ends."""
    redactor = config.stash[RESOURCES].redactor
    config.pluginmanager.register(Outgoing(redactor), "upskill-outgoing")
    logs = ExitStack()
    logs.enter_context(redacted_logs(redactor))
    config.add_cleanup(logs.close)


def _costly(settings: Settings, prices: Prices) -> bool:
    """Return whether agents are to be paid for, at prices that are all known."""
    agents = any(model.agent for model in settings.models)
    return agents and all(map(prices.known, settings.asked))


def _agent_sandbox(level: Level) -> Sandbox:
    from pytest_upskill.agents.confinement import agent_sandbox

    return agent_sandbox(level)


def _agent_runner(sandbox: Callable[[], Sandbox], most: int) -> AgentRunner:
    # Imported here: most runs have no agents.
    from pytest_upskill.agents.runner import AgentRunner as Loop

    return Loop(sandbox, most)


def _compilers(config: pytest.Config, level: Level, languages: Iterable[Language]) -> Compilers:
    # Imported here: most skills have nothing to compile.
    from pytest_upskill.compile import Compilers

    return Compilers(level, languages, folder=_builds(config))


def _builds(config: pytest.Config) -> Path | None:
    """Return the folder of known builds, in pytest's cache so that --cache-clear deletes it."""
    cache: pytest.Cache | None = getattr(config, "cache", None)
    if cache is None:
        return None
    with suppress(OSError):
        return cache.mkdir("upskill-builds")
    return None


class OwnAnswers:
    """Plugin that fetches answers in the process that runs the items."""

    def __init__(self, config: pytest.Config, spending: Spending) -> None:
        self._config = config
        self._spending = spending
        self._prepared: Prepared | None = None
        self._service: Service | None = None
        self._progress: Progress | None = None

    # First: pytest's reporter prints the forecast in the same hook.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Check, before the first test, that every trial can be answered."""
        if runs_tests(self._config):
            self._prepared = prepare(self._config, wanted(session.items))
            self._spending.forecast = self._prepared.forecast

    # Last, so innermost: fetching has stopped when other plugins compute the results.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Stop fetching after the last test, also if the run was interrupted."""
        try:
            return (yield)
        finally:
            if self._service is not None:
                stop_service(self._config, self._service)

    def of(self, item: TrialItem) -> list[Answer]:
        """Wait for the answers to all runs of the item's trial and return them."""
        if self._service is None or self._progress is None:
            assert self._prepared is not None
            # Not before the first trial: a session that stops earlier must cost nothing.
            self._service = start_service(self._config, self._prepared)
            self._progress = Progress(self._config, self._service, self._prepared.trials)
        self._service.want(item.nodeid)
        return self._progress.wait(item.nodeid)
