"""``--upskill-cache-prune``: delete recordings that no trial refers to, and run nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

from pytest_upskill.answers.cache import Cache
from pytest_upskill.answers.trial_runner import JUDGEMENT, recorded_steps
from pytest_upskill.models import Request
from pytest_upskill.project.messages import counted
from pytest_upskill.session.answers.hosts import hosts
from pytest_upskill.session.collection.items import TrialItem
from pytest_upskill.session.output.lines import write
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.trials.conversation import probe
from pytest_upskill.trials.trial import Trial, request


class Prune:
    """Plugin that deletes unused recordings, in a dry run lists them, and runs no test."""

    def __init__(self, config: pytest.Config, *, dry_run: bool) -> None:
        self._config = config
        self._dry_run = dry_run
        self._deselected = False

    def pytest_deselected(self) -> None:
        """Record that some items are deselected."""
        self._deselected = True

    # First: no test may start.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Delete unused recordings, and run no test.

        Raises:
            pytest.UsageError: Not all trials were collected, so a recording may still be in use.
        """
        items = [item for item in session.items if isinstance(item, TrialItem)]
        reason = self._why_incomplete(session, items)
        if reason is not None:
            raise pytest.UsageError(
                f"--upskill-cache-prune: {reason}, so recordings in use would be deleted too: "
                f"select all skills and models that have recordings"
            )
        self._prune(items)
        return True

    def _why_incomplete(self, session: pytest.Session, items: Sequence[TrialItem]) -> str | None:
        """Return why the collected trials may be incomplete, None if they are complete."""
        if session.testsfailed:
            return "some files could not be collected"
        if self._deselected or any("::" in arg for arg in self._config.args):
            return "some trials are deselected"
        if not items:
            return "there are no trials"
        return None

    def _prune(self, items: Sequence[TrialItem]) -> None:
        trials = [item.trial for item in items]
        host_of = hosts(self._config, dict.fromkeys(trial.model for trial in trials))
        cache = self._config.stash[RESOURCES].cache

        def requests(run: int) -> Iterator[tuple[Request, str]]:
            for trial in trials:
                url = host_of[trial.model].url
                yield from ((request, url) for request in _requests(trial, run, cache, url))

        # A judgement depends on the text of the answer, which no trial contains: keep them all.
        unused = [
            (file, recording)
            for file, recording in cache.unused(requests)
            if not recording.subject.startswith(JUDGEMENT)
        ]
        for file, recording in unused:
            self._print(f"{os.path.relpath(file)}: {recording.subject}, {recording.recorded}")
            if not self._dry_run:
                file.unlink(missing_ok=True)
        done = "would be deleted" if self._dry_run else "deleted"
        self._print(f"upskill: {counted(len(unused), 'recording')} in {cache.folder} {done}")

    def _print(self, line: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            write(reporter, line)


def _requests(trial: Trial, run: int, cache: Cache, url: str) -> Iterator[Request]:
    """Yield the requests of a run, also those that follow from recorded replies."""
    if not trial.chooses:
        yield request(trial, run)
        return
    yield probe(trial.model, trial.max_tokens)
    steps = recorded_steps(trial, run, lambda sent: cache.load(sent, url))
    yield from (sent for sent, _ in steps)
