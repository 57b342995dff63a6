"""Progress while a session waits for answers: a row below pytest's output, or lines in a log."""

import os
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest

from pytest_upskill.answers.progress import REFRESH_S, Tally, progress_parts
from pytest_upskill.answers.service import Service
from pytest_upskill.figures.wording import fit_parts
from pytest_upskill.grading.grade import Answer
from pytest_upskill.project.messages import safe
from pytest_upskill.session.messages import begin_line
from pytest_upskill.session.resources import RESOURCES

FIRST_S = 10.0
"""Seconds before the first line, if not on a terminal."""
AGAIN_S = 60.0
"""Seconds between such lines."""

# Escape sequences: move to the row below, scrolling if needed, and back to the saved position.
# They need no column numbers: pytest's line may wrap, and a character may be two columns wide.
_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[2K"
_BACK = "\x1b8"


class Progress:
    """Waiting for answers, with progress output.

    It is in a row of a terminal that is finally cleared. In a log there is a line now and then, so
    that a long wait does not look like a hang.

    Args:
        config: Config of this process.
        service: Service that runs the trials.
        keys: Keys of the trials.
    """

    def __init__(self, config: pytest.Config, service: Service, keys: Iterable[str]) -> None:
        self._config = config
        self._reporter: pytest.TerminalReporter | None = None
        if config.get_verbosity() >= 0:
            self._reporter = config.pluginmanager.get_plugin("terminalreporter")
        is_dumb = os.environ.get("TERM", "dumb") == "dumb"
        self._is_log = is_dumb or self._reporter is None or not self._reporter.isatty
        self._row_is_shown = False
        self._due = time.monotonic() + FIRST_S
        self._service = service
        self._resources = config.stash[RESOURCES]
        runs = [run for key in keys for run in service.run_results(key)]
        self._tally = Tally(runs, service.runs_to_judge())

    def wait(self, key: str) -> list[Answer]:
        """Wait for the answers to all runs of a trial and return them."""
        self._service.prioritize(key)
        answers = self._service.result(key)
        if self._is_log:
            # It may be due although answers come so quickly that no test waits.
            self.update()
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
        """Print the progress if answers are missing: what fits in the row, or a line if one is due.

        The most important parts come first.
        """
        self._tally.count()
        if self._reporter is None or self._tally.done == self._tally.total:
            return
        parts = [*progress_parts(self._tally, self._resources.activity, self._resources.bill.all)]
        if not self._is_log:
            self._row_is_shown = True  # first: Ctrl-C may arrive in between
            self._write_row(parts)
        elif time.monotonic() >= self._due:
            with _uncaptured(self._config):
                # pytest prints the test's name, or its file, again before its result.
                begin_line(self._reporter)
                self._reporter.line(safe(", ".join(parts)))
                self._reporter.flush()
            self._due = time.monotonic() + AGAIN_S

    def clear(self) -> None:
        """Clear the row before pytest prints; the lines of a log stay."""
        if self._row_is_shown:
            self._write_row(())
            self._row_is_shown = False

    def _write_row(self, parts: Sequence[str]) -> None:
        writer = self._config.get_terminal_writer()
        with _uncaptured(self._config):  # what is captured has no width
            writer.write_raw(f"{_BELOW}{fit_parts(parts, writer.fullwidth - 1)}{_BACK}", flush=True)


def _uncaptured(config: pytest.Config) -> AbstractContextManager[object]:
    capture = config.pluginmanager.get_plugin("capturemanager")
    return nullcontext() if capture is None else capture.global_and_fixture_disabled()


class Heartbeat:
    """Plugin that prints progress from a thread, never at the same time as pytest prints.

    The thread starts with the first test: before that pytest-xdist prints.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._print_lock = threading.RLock()
        self._ended = threading.Event()

    @pytest.hookimpl(wrapper=True, tryfirst=True, optionalhook=True)
    def _print(self) -> Generator[None, object, object]:
        """Clear the line while a name, a result, the percentage, or a worker's crash is printed."""
        with self._print_lock:
            if self._thread.ident is None:
                self._thread.start()
            self._progress.clear()
            return (yield)

    pytest_runtest_logstart = pytest_runtest_logreport = _print
    pytest_runtest_logfinish = pytest_testnodedown = _print

    def stop(self) -> None:
        """Print nothing more."""
        with self._print_lock:
            self._ended.set()
            self._progress.clear()

    def _run(self) -> None:
        while not self._ended.wait(REFRESH_S):
            with self._print_lock:
                # The run may have ended while this thread waited for the lock.
                if not self._ended.is_set():
                    self._progress.update()


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt where CPython replaces it by a RuntimeError.

    If Ctrl-C arrives while ``Condition.wait`` releases or acquires its lock, Python releases the
    lock without holding it, which raises RuntimeError.
    """
    try:
        yield
    except RuntimeError as error:
        cause = error.__context__
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise cause from None
            cause = cause.__context__
        raise
