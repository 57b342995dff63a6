"""One share of the trials: the same on every machine, and all shares alike in size."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_upskill.session.items import TrialItem
from pytest_upskill.session.worker_output import tell, told

_KEY = "upskill_shard"


class Shard:
    """Leaves the trials of other shares out of the run.

    Args:
        config: Of this process.
        number: Which share, from 1.
        shards: How many there are.
    """

    def __init__(self, config: pytest.Config, number: int, shards: int) -> None:
        self._config = config
        self._left_out = False
        self._number = number
        self._shards = shards

    # First: a share is the same whatever -k or -m take from it.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect trials of other shares; what is no trial runs in every share."""
        trials = {item: _case(item) for item in items if isinstance(item, TrialItem)}
        mine = share(trials.values(), self._number, self._shards)
        others = [item for item, case in trials.items() if case not in mine]
        if others:
            self._left_out = True
            self._config.hook.pytest_deselected(items=others)
            left = set(others)
            items[:] = [item for item in items if item not in left]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear from a worker whether other shares have something; all workers know the same."""
        self._left_out |= bool(told(node, _KEY))

    # First: what comes later prints the status.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let an empty share be green where others are not: cases may be fewer than shares."""
        if tell(self._config, _KEY, self._left_out):
            return
        if self._left_out and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK


def share(cases: Iterable[str], number: int, shards: int) -> frozenset[str]:
    """Choose the cases of one share.

    In the order of their digests, so that a case that is new or gone moves few of the others.

    Args:
        cases: Names, each perhaps several times.
        number: Which share, from 1.
        shards: How many there are.
    """
    ordered = sorted(set(cases), key=lambda case: hashlib.sha256(case.encode()).digest())
    start, end = ((n * len(ordered)) // shards for n in (number - 1, number))
    return frozenset(ordered[start:end])


def _case(item: TrialItem) -> str:
    """Name what must stay together: a case on a model, with all its arms."""
    path = item.parent.nodeid if item.parent else ""
    return f"{path}::{item.trial.case.id}[{item.trial.model.label}]"
