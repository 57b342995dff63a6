"""``--upskill-shard``: run one of N shards, equal in size and the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_upskill.session.collection.items import TrialItem
from pytest_upskill.session.worker_output import send_to_controller, sent_by

_KEY = "upskill_shard"


class Shard:
    """Plugin that deselects the trials of other shards.

    Args:
        config: Config of this process.
        number: Number of the shard to run, from 1.
        shards: Number of shards.
    """

    def __init__(self, config: pytest.Config, number: int, shards: int) -> None:
        self._config = config
        self._left_out = False
        self._number = number
        self._shards = shards

    # First: a shard must not depend on what -k or -m deselect.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect the trials of other shards; other items run in every shard."""
        trials = {item: _case(item) for item in items if isinstance(item, TrialItem)}
        mine = cases_of_shard(trials.values(), self._number, self._shards)
        others = [item for item, case in trials.items() if case not in mine]
        if others:
            self._left_out = True
            self._config.hook.pytest_deselected(items=others)
            left = set(others)
            items[:] = [item for item in items if item not in left]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read from a worker whether it deselected trials; all workers deselect the same."""
        self._left_out |= bool(sent_by(node, _KEY))

    # First: later hooks print the exit status.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Set the exit status to OK if the shard is empty because other shards have all trials."""
        if send_to_controller(self._config, _KEY, self._left_out):
            return
        if self._left_out and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK


def cases_of_shard(cases: Iterable[str], number: int, shards: int) -> frozenset[str]:
    """Return the cases of one shard.

    Cases are ordered by digest, so that adding or removing a case moves few of the others.

    Args:
        cases: Names of all cases; may repeat.
        number: Number of the shard, from 1.
        shards: Number of shards.
    """
    ordered = sorted(set(cases), key=lambda case: hashlib.sha256(case.encode()).digest())
    start, end = ((n * len(ordered)) // shards for n in (number - 1, number))
    return frozenset(ordered[start:end])


def _case(item: TrialItem) -> str:
    """Return the name of a case on a model, whose arms must run in the same shard."""
    return f"{item.place}::{item.trial.case.id}[{item.trial.model.label}]"
