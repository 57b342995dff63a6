"""Progress output while a session waits for answers."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

import pytest

from pytest_upskill.completions.service import Service
from pytest_upskill.completions.tally import REFRESH_S, Tally, parts
from pytest_upskill.grading.grade import Answer
from pytest_upskill.session.interruption import interruptible
from pytest_upskill.session.output.live_line import line_of
from pytest_upskill.session.resources import RESOURCES


class Progress:
    """Waiting for answers, with progress output.

    Args:
        config: Config of this process.
        service: Service that runs the trials.
        trials: Keys of all of them.
    """

    def __init__(self, config: pytest.Config, service: Service, trials: Iterable[str]) -> None:
        self._line = line_of(config)
        self._service = service
        self._activity = config.stash[RESOURCES].activity
        self._tally = Tally(run for trial in trials for run in service.runs(trial))

    def wait(self, key: str) -> list[Answer]:
        """Wait for the answers to all runs of a trial and return them."""
        answers = self._service.result(key)
        try:
            while True:
                try:
                    with interruptible():
                        return answers.result(REFRESH_S)
                except TimeoutError:
                    self.update()
        finally:
            self.clear()

    def update(self) -> None:
        """Print the progress if answers are still missing."""
        self._tally.count()
        if self._tally.done < self._tally.total:
            self._line.show(list(parts(self._tally, self._activity)))

    def clear(self) -> None:
        """Clear the progress line before pytest prints."""
        self._line.clear()


class Heartbeat:
    """Plugin that prints progress from a thread, never at the same time as pytest prints."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._thread: threading.Thread | None = None
        self._turn = threading.RLock()
        self._ended = threading.Event()

    def watch(self, progress: Progress) -> None:
        """Set the progress to print from the first test on; before that pytest-xdist prints."""
        self._progress = progress

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, object, object]:
        """Clear the line while the name of a test is printed; start the thread at the first."""
        if self._progress is not None and self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(self._progress,), name="upskill-progress", daemon=True
            )
            self._thread.start()
        with self._cleared():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None, object, object]:
        """Clear the line while a result is printed."""
        with self._cleared():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self) -> Generator[None, object, object]:
        """Clear the line while the percentage is printed."""
        with self._cleared():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True, optionalhook=True)
    def pytest_testnodedown(self) -> Generator[None, object, object]:
        """Clear the line while pytest-xdist reports a crashed worker."""
        with self._cleared():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """End the thread after the last test, also after -x or Ctrl-C."""
        try:
            return (yield)
        finally:
            self._ended.set()
            with self._cleared():
                pass

    @contextmanager
    def _cleared(self) -> Iterator[None]:
        with self._turn:
            if self._progress is not None:
                self._progress.clear()
            yield

    def _run(self, progress: Progress) -> None:
        while not self._ended.wait(REFRESH_S):
            with self._turn:
                # The run may have ended while this thread waited for the lock.
                if not self._ended.is_set():
                    progress.update()
