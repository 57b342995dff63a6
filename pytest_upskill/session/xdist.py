"""Answers under pytest-xdist: the controller sends all requests, workers wait for answers.

They talk through the files of one folder, the `Handover`, in this order:

1. The `Controller` makes the folder, and sends its path to each worker in ``workerinput``.
2. Each worker (`HandedAnswers`) collects, and writes the trials that need answers to ``trials``.
3. When the first worker has collected, the controller reads ``trials`` and starts to fetch.
4. When a trial has all its answers, the controller writes one file with them.
5. The worker that runs the trial waits for this file and reads it, or fails the trial once the
   controller has deleted the file ``open``: then no more answers will come.
"""

import hashlib
import pickle
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import TypeAdapter

from pytest_upskill.grading.grade import Answer
from pytest_upskill.models import Model
from pytest_upskill.project.files import write_file
from pytest_upskill.session.fetching import Fetching
from pytest_upskill.session.items import needing_answers
from pytest_upskill.session.messages import begin_line
from pytest_upskill.session.progress import Heartbeat
from pytest_upskill.session.settings import runs_tests
from pytest_upskill.session.terminal import lines_before_the_run, needs_lines
from pytest_upskill.trials.trial import Trial

_ANSWERS = TypeAdapter(list[Answer])


class Collected(NamedTuple):
    """What a worker collected."""

    keys: dict[str, str]
    """The keys of the trials that need answers, by the node ids of their items."""
    trials: dict[str, Trial]
    needs: list[str]
    """Lines about how the cases can be measured."""


class Controller(Fetching):
    """Plugin of the controller, which fetches the answers for all workers.

    So one concurrency limit and one budget apply, and a crashed worker causes no second request.
    """

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        self._handover = Handover(Path(tempfile.mkdtemp(prefix="pytest-upskill-")))
        self._handover.open_marker.touch()
        self._keys: dict[str, str] = {}
        """Keys of the trials by node id; outside the rootdir, several may share one."""
        self._heartbeat: Heartbeat | None = None
        config.add_cleanup(self._handover.remove)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the path of the handover's folder to a worker."""
        node.workerinput["upskill"] = str(self._handover.folder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Start fetching when the first worker has collected; all collect the same trials."""
        if self._service is not None or not runs_tests(self._config):
            return
        collected = self._handover.read_collected(self._settings.models, self._settings.judge)
        self._keys = collected.keys
        self.prepare(collected.trials)
        # pytest has a hook for these lines only in a process that collects.
        if reporter := self._config.pluginmanager.get_plugin("terminalreporter"):
            begin_line(reporter)  # pytest-xdist's line about its workers has no end
            for line in lines_before_the_run(self._config, collected.needs, self._forecast):
                reporter.write_line(line)
        service, progress = self.start()
        self._heartbeat = Heartbeat(progress)
        self._config.pluginmanager.register(self._heartbeat, "upskill-heartbeat")
        for key in collected.trials:
            service.result(key).add_done_callback(partial(self._write_answers, key))

    def stop(self) -> None:
        """Stop fetching, and the workers' waiting."""
        self._handover.mark_closed()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        super().stop()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Move the requests of a trial that starts to the front of the queue."""
        if self._service is not None and nodeid in self._keys:
            self._service.prioritize(self._keys[nodeid])

    def pytest_runtest_logreport(self) -> None:
        """Stop the workers' waiting once -x or --maxfail ends the run."""
        session: Any = self._config.pluginmanager.get_plugin("session")
        if session.shouldfail:
            self._handover.mark_closed()

    def _write_answers(self, key: str, answers: Future[list[Answer]]) -> None:
        """Write a trial's answers for the worker that runs it."""
        if answers.cancelled():
            return
        try:
            self._handover.write_answers(key, answers.result())
        # The disk is full, or JSON cannot express a text (pydantic's error is a ValueError).
        # Workers must not wait for answers that cannot reach them.
        except (OSError, ValueError):
            self._handover.mark_closed()


class Handover:
    """Folder through which workers get their answers from the controller.

    It has ``trials``, one file for each trial's answers, and the marker ``open`` as long as more
    answers may come. Files are written atomically, so a reader never sees a part of one.

    Args:
        folder: Folder that only the controller and its workers read and write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open_marker = folder / "open"
        """As long as it exists, answers may come, for which workers wait."""
        self._trials_file = folder / "trials"

    def write_collected(self, collected: Collected) -> None:
        """Write what a worker collected, without passwords."""
        trials = {
            key: replace(
                trial,
                model=replace(trial.model, userinfo=""),
                judge=trial.judge and replace(trial.judge, userinfo=""),
            )
            for key, trial in collected.trials.items()
        }
        write_file(self._trials_file, pickle.dumps(collected._replace(trials=trials)))

    def read_collected(self, models: Iterable[Model], judge: Model | None) -> Collected:
        """Return what a worker collected.

        Args:
            models: The models of the session, with the passwords that the file lacks.
            judge: The judge of the session, likewise.
        """
        # Written before the first test, so before any answer could run code.
        collected: Collected = pickle.loads(self._trials_file.read_bytes())  # noqa: S301
        by_label = {model.label: model for model in models}
        trials = {
            key: replace(trial, model=by_label[trial.model.label], judge=trial.judge and judge)
            for key, trial in collected.trials.items()
        }
        return collected._replace(trials=trials)

    def write_answers(self, key: str, answers: Sequence[Answer]) -> None:
        """Write a trial's answers for the worker that runs it.

        Raises:
            OSError: The file cannot be written.
            ValueError: An answer cannot be written as JSON.
        """
        write_file(self._answers_file(key), _ANSWERS.dump_json([*answers]))

    def wait_for_answers(self, key: str) -> list[Answer]:
        """Wait for a trial's answers and return them; fail the test if they will not come."""
        file = self._answers_file(key)
        while not file.exists():
            if not self.open_marker.exists():
                why = "the run was stopped, or the disk is full, before this trial had its answers"
                pytest.fail(why, pytrace=False)
            time.sleep(0.01)
        return _ANSWERS.validate_json(file.read_bytes())

    def mark_closed(self) -> None:
        """Remove the mark that answers will come, so that workers stop waiting."""
        # Deleting a file works on a full disk too.
        self.open_marker.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the folder; workers stop waiting."""
        # The marker must go even if the folder cannot be deleted.
        self.mark_closed()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers_file(self, key: str) -> Path:
        return self.folder / hashlib.sha256(key.encode()).hexdigest()[:32]


class HandedAnswers(Handover):
    """Plugin of a worker, which waits for the answers from the controller."""

    # First: in the same hook pytest-xdist notifies the controller of the collection.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write which trials need answers."""
        items = needing_answers(session.items)
        keys = {item.nodeid: item.key for item in items}
        trials = {item.key: item.trial for item in items}
        self.write_collected(Collected(keys, trials, needs_lines(session.items)))
