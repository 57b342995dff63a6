"""Answers under pytest-xdist: the controller sends all requests, workers wait for answers.

The way of an answer, through the folder of `Handover`:

1. Each worker collects, and writes which trials need answers (`HandedAnswers`).
2. When the first worker has collected, the `Controller` reads them and starts to fetch.
3. When a trial has all its answers, the controller writes them into a file of its own.
4. The worker that runs the trial waits for this file, reads it and grades the answers.
"""

from __future__ import annotations

import hashlib
import pickle
import shutil
import tempfile
import time
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from pytest_upskill.answers.service import Service
from pytest_upskill.grading.grade import Answer
from pytest_upskill.model import Model
from pytest_upskill.repository.atomic_write import write_whole
from pytest_upskill.session.answers.preflight import Prepared, prepare, start_service, stop_service
from pytest_upskill.session.collection.items import TrialItem, needing_answers
from pytest_upskill.session.options.settings import SETTINGS, runs_tests
from pytest_upskill.session.output.progress import Heartbeat, Progress, interruptible
from pytest_upskill.session.output.spending import forecast_lines
from pytest_upskill.trials.trial import Trial

_POLL_S = 0.01
_ANSWERS = TypeAdapter(list[Answer])


class Controller:
    """Plugin of the controller, which fetches the answers for all workers.

    So one concurrency limit and one budget apply, and a crashed worker causes no second request.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session: pytest.Session | None = None
        self._handover = Handover(Path(tempfile.mkdtemp(prefix="pytest-upskill-")))
        self._handover.open()
        self._keys: dict[str, list[str]] = {}
        """Keys of the trials by node id, which those outside the rootdir may share."""
        self._service: Service | None = None
        self._heartbeat = Heartbeat()
        config.pluginmanager.register(self._heartbeat, "upskill-heartbeat")
        config.add_cleanup(self._handover.remove)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session, which knows whether the run should stop."""
        self._session = session

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the folder of its answers."""
        node.workerinput["upskill"] = str(self._handover.folder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Start fetching when the first worker has collected; all workers collect the same."""
        if self._service is not None or not runs_tests(self._config):
            return
        settings = self._config.stash[SETTINGS]
        found = self._handover.read_trials(settings.models, settings.judge)
        for key, (nodeid, _) in found.items():
            self._keys.setdefault(nodeid, []).append(key)
        prepared = prepare(self._config, {key: trial for key, (_, trial) in found.items()})
        self._print_forecast(prepared)
        self._service = start_service(self._config, prepared)
        self._heartbeat.watch(Progress(self._config, self._service, found))
        for key in found:
            self._service.result(key).add_done_callback(partial(self._hand_over, key))

    # Last, so innermost: fetching has stopped when other plugins compute the results.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Stop fetching after the last test, also if the run was interrupted."""
        try:
            with interruptible():
                return (yield)
        finally:
            self._handover.close()
            if self._service is not None:
                stop_service(self._config, self._service)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Move the requests of a trial that starts to the front of the queue."""
        if self._service is not None:
            for key in self._keys.get(nodeid, ()):
                self._service.prioritize(key)

    def pytest_runtest_logreport(self) -> None:
        """Stop the workers' waiting once -x or --maxfail ends the run."""
        if self._session is not None and self._session.shouldfail:
            self._handover.close()

    def _print_forecast(self, prepared: Prepared) -> None:
        """Print what pytest prints by a hook where it collects."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return
        for line in forecast_lines(self._config, prepared.trials.values(), prepared.forecast):
            if reporter.isatty:
                # Overwrite the line of pytest-xdist about its workers, which it never ends.
                reporter.rewrite(line, erase=True)
                reporter.line("")
            else:
                reporter.write_line(line)

    def _hand_over(self, key: str, answers: Future[list[Answer]]) -> None:
        """Write a trial's answers for the worker that waits for them."""
        if answers.cancelled():
            return
        try:
            self._handover.give(key, answers.result())
        # A full disk, or text that JSON has no way to write (pydantic's error is a ValueError):
        # workers must not wait for what cannot reach them.
        except (OSError, ValueError):
            self._handover.close()


class HandedAnswers:
    """Plugin of a worker, which waits for the answers from the controller."""

    def __init__(self, folder: str) -> None:
        self._handover = Handover(Path(folder))

    # First: in the same hook pytest-xdist notifies the controller of the collection.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write which trials need answers."""
        self._handover.write_trials(
            {i.key: (i.nodeid, i.trial) for i in needing_answers(session.items)}
        )

    def of(self, item: TrialItem) -> list[Answer]:
        """Wait for the answers to all runs of the item's trial and return them."""
        answers = self._handover.take(item.key)
        if answers is None:
            pytest.fail(
                "the run was stopped, or the disk is full, before this trial had its answers",
                pytrace=False,
            )
        return answers


class Handover:
    """Folder with the wanted trials, and one file for each trial's answers.

    Each file appears complete.

    Args:
        folder: Folder that only the controller and its workers read and write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open = folder / "open"
        self._trials = folder / "trials"

    def open(self) -> None:
        """Mark the folder as open: answers will come."""
        self._open.touch()

    def write_trials(self, trials: dict[str, tuple[str, Trial]]) -> None:
        """Write which trials need answers, without passwords: node id and trial by its key."""
        safe = {key: (nodeid, _without_passwords(trial)) for key, (nodeid, trial) in trials.items()}
        pickled = BytesIO()
        _TrialPickler(pickled).dump(safe)
        write_whole(self._trials, pickled.getvalue())

    def read_trials(
        self, models: Iterable[Model], judge: Model | None
    ) -> dict[str, tuple[str, Trial]]:
        """Return the trials that need answers, as a worker collected them.

        Args:
            models: The models of the session, with the passwords that the file lacks.
            judge: The judge of the session.
        """
        # Written before the first test, so before any answer could run code.
        trials: dict[str, tuple[str, Trial]] = pickle.loads(self._trials.read_bytes())  # noqa: S301
        known = {model.label: model for model in models}
        return {
            key: (
                nodeid,
                replace(trial, model=known[trial.model.label], judge=trial.judge and judge),
            )
            for key, (nodeid, trial) in trials.items()
        }

    def give(self, key: str, answers: Sequence[Answer]) -> None:
        """Write a trial's answers for the worker that waits for them.

        Raises:
            OSError: The file cannot be written.
            ValueError: An answer cannot be written as JSON.
        """
        write_whole(self._file(key), _ANSWERS.dump_json([*answers]))

    def take(self, key: str) -> list[Answer] | None:
        """Wait for a trial's answers and return them; None if the folder is closed before."""
        file = self._file(key)
        while not file.exists():
            if not self._open.exists():
                return None
            time.sleep(_POLL_S)
        return _ANSWERS.validate_json(file.read_bytes())

    def close(self) -> None:
        """Mark the folder as closed: workers stop waiting."""
        # Deleting a file works on a full disk too.
        self._open.unlink(missing_ok=True)

    def remove(self) -> None:
        """Close and delete the folder."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, key: str) -> Path:
        return self.folder / hashlib.sha256(key.encode()).hexdigest()[:32]


class _TrialPickler(pickle.Pickler):
    """Writes paths as text: pickles of Python 3.13 name a module that older Pythons lack.

    A worker that pytest-xdist reaches over a socket or SSH may run another Python.
    """

    dispatch_table = {type(Path()): lambda path: (_read_path, (str(path),))}  # noqa: RUF012  as in the base class


def _read_path(text: str) -> Path:
    return Path(text)


def _without_passwords(trial: Trial) -> Trial:
    judge = trial.judge and replace(trial.judge, userinfo="")
    return replace(trial, model=replace(trial.model, userinfo=""), judge=judge)
