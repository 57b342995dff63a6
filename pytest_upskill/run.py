"""What a run about skills registers, and how one process answers its own items."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pytest_upskill.answers import Host, Key
from pytest_upskill.compile import Compilers
from pytest_upskill.fetch import Fetcher
from pytest_upskill.fetching import COMPILERS, find_hosts, start_fetching
from pytest_upskill.grade import Answer
from pytest_upskill.items import ANSWERS, TrialItem, TrialReports, wanted
from pytest_upskill.ledger import Ledger
from pytest_upskill.models import Model
from pytest_upskill.report.junit import JUnit
from pytest_upskill.report.terminal import Terminal
from pytest_upskill.settings import SETTINGS, Settings
from pytest_upskill.xdist import Controller, HandedAnswers


def start(config: pytest.Config) -> None:
    """Read the settings and register what this process needs.

    Raises:
        pytest.UsageError: An option cannot be used as it is.
    """
    settings = config.stash[SETTINGS] = Settings.from_config(config)
    config.stash[COMPILERS] = Compilers(settings.sandbox)
    plugins = config.pluginmanager
    plugins.register(TrialReports(), "upskill-reports")
    if hasattr(config, "workerinput"):
        answers = config.stash[ANSWERS] = HandedAnswers(config.workerinput["upskill"])
        plugins.register(answers, "upskill-answers")
        return
    ledger = Ledger(config, settings)
    plugins.register(ledger, "upskill-ledger")
    plugins.register(Terminal(settings, ledger), "upskill-terminal")
    plugins.register(JUnit(config, ledger), "upskill-junit")
    if config.getoption("dist", "no") == "no":
        own = config.stash[ANSWERS] = OwnAnswers(config)
        plugins.register(own, "upskill-answers")
    else:
        plugins.register(Controller(config), "upskill-controller")


class OwnAnswers:
    """Fetches in this process what its own items wait for."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._hosts: Mapping[Model, Host] = {}
        self._fetcher: Fetcher[Key, Answer] | None = None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Find out before the first test whether every model can be asked."""
        if not self._config.option.collectonly:
            self._hosts = find_hosts(self._config, wanted(session.items).values())

    def of(self, item: TrialItem) -> list[Answer]:
        """Wait for every run of the item's trial."""
        if self._fetcher is None:
            # Not before the first trial: a run that stops earlier has spent nothing.
            trials = wanted(item.session.items)
            self._fetcher = start_fetching(self._config, trials, self._hosts)
        keys = [(item.nodeid, run) for run in range(item.trial.runs)]
        for key in keys:
            self._fetcher.want(key)
        return [self._fetcher.result(key) for key in keys]
