"""Fetching under pytest-xdist: the controller sends all requests, workers wait for answers."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.completions.service import Service
from pytest_upskill.formats.load import load_skills
from pytest_upskill.grading.grade import Answer
from pytest_upskill.session.answers.handover import Handover, StoppedError
from pytest_upskill.session.answers.preflight import (
    prepare,
    start_service,
    stop_service,
)
from pytest_upskill.session.collection.catalogues import catalogues_of
from pytest_upskill.session.collection.items import TrialItem, shown, trials_by_name
from pytest_upskill.session.collection.places import places_of
from pytest_upskill.session.interruption import interruptible
from pytest_upskill.session.options.settings import SETTINGS, runs_tests
from pytest_upskill.session.output.progress import Heartbeat, Progress
from pytest_upskill.session.output.spending import Spending
from pytest_upskill.session.plugin_hooks import claimed_elsewhere
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.trials.trial import Trial


class Controller:
    """Plugin of the controller, which fetches the answers for all workers.

    So one concurrency limit and one budget apply, and a crashed worker causes no second request.
    """

    def __init__(self, config: pytest.Config, spending: Spending) -> None:
        self._config = config
        self._spending = spending
        self._session: pytest.Session | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="pytest-upskill-"))
        self._handover = Handover(self._folder)
        self._handover.start()
        self._trials: dict[str, Trial] = {}
        self._keys: dict[str, list[str]] = {}
        """Keys of the trials by node id, which those outside the rootdir may share."""
        self._service: Service | None = None
        self._heartbeat = Heartbeat()
        config.pluginmanager.register(self._heartbeat, "upskill-heartbeat")
        config.add_cleanup(self._close)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session, which knows whether the run should stop."""
        self._session = session

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the folder of its answers."""
        node.workerinput["upskill"] = str(self._folder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Start fetching when the first worker has collected; all workers collect the same."""
        if self._service is not None or not runs_tests(self._config):
            return
        found = self._handover.wanted()
        self._trials = _trials(self._config, found)
        for key, nodeid in found.items():
            self._keys.setdefault(nodeid, []).append(key)
        prepared = prepare(self._config, self._trials)
        self._spending.forecast = prepared.forecast
        self._spending.announce()
        self._service = start_service(self._config, prepared)
        self._heartbeat.watch(Progress(self._config, self._service, self._trials))
        for key in self._trials:
            self._service.result(key).add_done_callback(partial(self._hand_over, key))

    # Last, so innermost: fetching has stopped when other plugins compute the results.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Stop fetching after the last test, also if the run was interrupted."""
        try:
            with interruptible():
                return (yield)
        finally:
            self._handover.stop()
            if self._service is not None:
                stop_service(self._config, self._service)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Move the requests of a trial that starts to the front of the queue."""
        if self._service is not None:
            for key in self._keys.get(nodeid, ()):
                self._service.want(key)

    def pytest_runtest_logreport(self) -> None:
        """Stop the workers' waiting once -x or --maxfail ends the run."""
        if self._session is not None and self._session.shouldfail:
            self._handover.stop()

    def _hand_over(self, key: str, answers: Future[list[Answer]]) -> None:
        """Write a trial's answers for the worker that waits for them."""
        if answers.cancelled():
            return
        try:
            self._handover.give(key, answers.result())
        # A full disk, or text that JSON has no way to write (pydantic's error is a ValueError):
        # workers must not wait for what cannot reach them.
        except (OSError, ValueError):
            self._handover.stop()

    def _close(self) -> None:
        self._handover.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class HandedAnswers:
    """Plugin of a worker, which waits for the answers from the controller."""

    def __init__(self, folder: str) -> None:
        self._handover = Handover(Path(folder))

    # First: in the same hook pytest-xdist notifies the controller of the collection.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write which trials need answers."""
        self._handover.want(
            {
                item.key: item.nodeid
                for item in session.items
                if isinstance(item, TrialItem) and item.needs_answers
            }
        )

    def of(self, item: TrialItem) -> list[Answer]:
        """Wait for the answers to all runs of the item's trial and return them."""
        with suppress(StoppedError):
            return self._handover.take(item.key)
        pytest.fail(
            "the run was stopped, or the disk is full, before this trial had its answers",
            pytrace=False,
        )


def _trials(config: pytest.Config, keys: Iterable[str]) -> dict[str, Trial]:
    """Return the trials of the workers' keys, read again from the same case files."""
    settings = config.stash[SETTINGS]
    files: dict[str, dict[str, Trial]] = {}
    trials = {}
    for key in keys:
        path, _, name = key.partition("::")
        if path not in files:
            case_file = Path(os.path.normpath(config.rootpath / path))
            skills = load_skills(
                case_file,
                shown=shown(case_file, config),
                extensions=claimed_elsewhere(config.stash[RESOURCES].languages),
                places=places_of(config),
            )
            files[path] = trials_by_name(skills, settings, catalogues_of(config))
        trials[key] = files[path][name]
    return trials
