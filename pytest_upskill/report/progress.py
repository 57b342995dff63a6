"""A line now and then while a run waits for answers, so that no wait looks like a hang."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import nullcontext
from itertools import chain

import pytest

from pytest_upskill.answers import Key
from pytest_upskill.fetch import Fetcher
from pytest_upskill.grade import Answer
from pytest_upskill.plan import Trial
from pytest_upskill.report.phrases import money
from pytest_upskill.report.text import safe

QUIET_S = {True: 10.0, False: 60.0}
"""Seconds of waiting before each line, on a terminal and elsewhere."""


class Progress:
    """Speaks in the process that asks, and only on its main thread, as pytest's reporter must.

    Args:
        config: Whose terminal to write to.
        fetcher: What fetches the answers.
        trials: All that are fetched, by node id.
    """

    def __init__(
        self, config: pytest.Config, fetcher: Fetcher[Key, Answer], trials: Mapping[str, Trial]
    ) -> None:
        plugins = config.pluginmanager
        self._reporter: pytest.TerminalReporter | None = plugins.get_plugin("terminalreporter")
        self._capture = plugins.get_plugin("capturemanager")
        self._quiet = config.get_verbosity() < 0
        self._verbose = config.get_verbosity() > 0
        self._writer = config.get_terminal_writer() if self._reporter else None
        self._fetcher = fetcher
        self._answers = {
            nodeid: [fetcher.future((nodeid, run)) for run in range(trial.runs)]
            for nodeid, trial in trials.items()
        }
        self._spoke_at = time.monotonic()

    def wait(self, nodeid: str) -> list[Answer]:
        """Wait for every run of a trial."""
        begun = time.monotonic()
        futures = self._answers[nodeid]
        while wait(futures, timeout=self._interval()).not_done:
            self._say(f", waiting {time.monotonic() - begun:.0f} s for {nodeid}")
        return [future.result() for future in futures]

    def tick(self) -> None:
        """Speak where a line is due; for a process that does not wait itself."""
        if time.monotonic() - self._spoke_at >= self._interval():
            self._say("")

    def _interval(self) -> float:
        return QUIET_S[self._reporter is not None and bool(self._reporter.isatty)]

    def _say(self, what: str) -> None:
        self._spoke_at = time.monotonic()
        if self._reporter is None or self._writer is None or self._quiet:
            return
        # While a test is set up, what is written goes to its captured output.
        with self._capture.global_and_fixture_disabled() if self._capture else nullcontext():
            if self._verbose:
                # The test's name is written again before its result.
                self._reporter.ensure_newline()
            elif self._writer.width_of_current_line:
                self._writer.line()
            futures = list(chain.from_iterable(self._answers.values()))
            self._writer.line(safe(f"upskill: {state(futures, self._fetcher.begun)}{what}"))
            self._writer.flush()


def state(answers: Sequence[Future[Answer]], begun: int) -> str:
    """Sum up: ``12 of 40 answers, 8 recorded, 20 in flight, $0.0210``."""
    done = [each for each in answers if each.done()]
    completions = [
        completion
        for each in done
        if not _broken(each) and (completion := each.result().completion)
    ]
    paid = [each.cost_usd for each in completions if not each.replayed]
    known = [cost for cost in paid if cost is not None]
    return (
        f"{len(done)} of {len(answers)} answers, "
        f"{sum(each.replayed for each in completions)} recorded, "
        f"{max(0, begun - len(done))} in flight, "
        f"{money(sum(known) if len(known) == len(paid) else None)}"
    )


def _broken(future: Future[Answer]) -> bool:
    return future.cancelled() or future.exception() is not None
