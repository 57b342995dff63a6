"""Answers in a session without pytest-xdist: the process that runs the items fetches them.

1. After the collection, `prepare` checks that every trial can be answered.
2. pytest prints the forecast of the requests.
3. The first trial that asks for its answers starts the service, which fetches those of all trials.
4. Each trial waits for its own answers; its requests move to the front of the queue.
5. After the last test the service is stopped.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_upskill.answers.service import Service
from pytest_upskill.grading.grade import Answer
from pytest_upskill.session.answers.preflight import Prepared, prepare, start_service, stop_service
from pytest_upskill.session.collection.items import TrialItem, needing_answers
from pytest_upskill.session.options.settings import runs_tests
from pytest_upskill.session.output.progress import Progress
from pytest_upskill.session.output.spending import forecast_lines


class FetchedAnswers:
    """Plugin that fetches answers in the process that runs the items."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._prepared: Prepared | None = None
        self._service: Service | None = None
        self._progress: Progress | None = None

    # First: pytest's reporter prints the forecast in the same hook.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Check, before the first test, that every trial can be answered."""
        if runs_tests(self._config):
            self._prepared = prepare(
                self._config, {item.key: item.trial for item in needing_answers(session.items)}
            )

    def pytest_report_collectionfinish(self) -> list[str]:
        """Return the lines with the forecast of the requests."""
        if self._prepared is None:
            return []
        return forecast_lines(self._config, self._prepared.trials.values(), self._prepared.forecast)

    # Last, so innermost: fetching has stopped when other plugins compute the results.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Stop fetching after the last test, also if the run was interrupted."""
        try:
            return (yield)
        finally:
            if self._service is not None:
                stop_service(self._config, self._service)

    def wait_for_answers(self, item: TrialItem) -> list[Answer]:
        """Wait for the answers to all runs of the item's trial and return them."""
        if self._service is None or self._progress is None:
            assert self._prepared is not None
            # Not before the first trial: a session that stops earlier must cost nothing.
            self._service = start_service(self._config, self._prepared)
            self._progress = Progress(self._config, self._service, self._prepared.trials)
        self._service.prioritize(item.key)
        return self._progress.wait(item.key)
