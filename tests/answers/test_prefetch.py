"""Fetching ahead: order, width, lookahead and stopping."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future

import pytest

from pytest_upskill.answers.service import Prefetcher

PATIENCE_S = 10.0
KEYS = range(10)


class Source:
    """Gives the value of a key once it is let go; notes what was started, in order."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.cancelled: list[int] = []
        self.closed = threading.Event()
        self._changed = threading.Condition()
        self._gates: dict[int, Future[None]] = defaultdict(Future)
        self._all_free = False

    async def fetch(self, key: int) -> int:
        with self._changed:
            self.started.append(key)
            self._changed.notify_all()
            if self._all_free:
                self._open(key)
        try:
            await asyncio.wrap_future(self._gates[key])
        except asyncio.CancelledError:
            self.cancelled.append(key)
            raise
        if key < 0:
            raise LookupError(key)
        return key * key

    async def close(self) -> None:
        self.closed.set()

    def let_go(self, *keys: int) -> None:
        """Release the values of these keys, or of all that will be requested."""
        with self._changed:
            self._all_free = not keys
            for key in keys:
                self._open(key)

    def _open(self, key: int) -> None:
        if not self._gates[key].done():
            self._gates[key].set_result(None)

    def wait_for(self, count: int) -> list[int]:
        """Wait until so many have started; return all that have."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.started) >= count, PATIENCE_S)
            return list(self.started)


def value(fetcher: Prefetcher[int, int], key: int) -> int:
    """Wait for the value of a key."""
    fetcher.prioritize(key)
    return fetcher.futures[key].result(PATIENCE_S)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def fetchers() -> Iterator[list[Prefetcher[int, int]]]:
    """Fetchers to stop after the test."""
    made: list[Prefetcher[int, int]] = []
    yield made
    for fetcher in made:
        fetcher.stop()


def test_keys_start_in_order_as_many_at_a_time_as_the_width(
    source: Source, fetchers: list[Prefetcher[int, int]]
) -> None:
    fetchers.append(Prefetcher([KEYS], source.fetch, width=3))

    first = source.wait_for(3)
    source.let_go(1)
    second = source.wait_for(4)

    assert first == [0, 1, 2]
    assert second == [0, 1, 2, 3]


def test_every_key_is_fetched_once_however_often_it_is_waited_for(
    source: Source, fetchers: list[Prefetcher[int, int]]
) -> None:
    source.let_go()
    fetchers.append(Prefetcher([KEYS], source.fetch, width=4))

    values = [value(fetchers[0], key) for key in [*KEYS, *KEYS]]

    assert values == [key * key for key in [*KEYS, *KEYS]]
    assert sorted(source.started) == list(KEYS)


def test_a_key_without_a_final_value_is_fetched_once_more_after_all_others(
    source: Source, fetchers: list[Prefetcher[int, int]]
) -> None:
    source.let_go()
    fetchers.append(Prefetcher([KEYS], source.fetch, width=1, is_final=lambda value: value != 4))

    values = [value(fetchers[0], key) for key in KEYS]

    assert values == [key * key for key in KEYS]
    assert source.started == [*KEYS, 2]


def test_a_known_key_is_not_fetched(source: Source, fetchers: list[Prefetcher[int, int]]) -> None:
    fetchers.append(Prefetcher([[0, 1]], source.fetch, width=1, known=[(7, -7)]))
    source.wait_for(1)

    known = value(fetchers[0], 7)

    assert known == -7
    assert source.started == [0]


def test_a_known_key_takes_nothing_from_the_lookahead(
    source: Source, fetchers: list[Prefetcher[int, int]]
) -> None:
    known = dict.fromkeys(range(50, 60), 0)
    fetchers.append(Prefetcher([KEYS], source.fetch, width=4, lookahead=2, known=known.items()))

    assert source.wait_for(2) == [0, 1]


def test_a_key_that_is_wanted_comes_next(
    source: Source, fetchers: list[Prefetcher[int, int]]
) -> None:
    fetchers.append(Prefetcher([KEYS], source.fetch, width=1))
    source.wait_for(1)

    fetchers[0].prioritize(7)
    source.let_go(0, 7)

    assert source.wait_for(3) == [0, 7, 1]


def test_a_slow_lane_does_not_hold_up_another(
    source: Source, fetchers: list[Prefetcher[int, int]]
) -> None:
    fetchers.append(Prefetcher([[0, 1], [10, 11]], source.fetch, width=1))
    source.wait_for(2)

    source.let_go(10, 11)

    assert value(fetchers[0], 11) == 121
    assert 1 not in source.started


def test_no_more_start_than_the_lookahead_beyond_what_is_waited_for(
    source: Source, fetchers: list[Prefetcher[int, int]]
) -> None:
    source.let_go()
    fetchers.append(Prefetcher([KEYS], source.fetch, width=10, lookahead=2))

    ahead = source.wait_for(2)
    found = value(fetchers[0], 5)
    more = source.wait_for(3)

    assert ahead == [0, 1]
    assert found == 25
    assert more == [0, 1, 5]


def test_an_error_is_raised_only_where_its_key_is_waited_for(
    source: Source, fetchers: list[Prefetcher[int, int]]
) -> None:
    source.let_go()
    fetchers.append(Prefetcher([[1, -1, 2]], source.fetch, width=1))

    with pytest.raises(LookupError):
        value(fetchers[0], -1)

    assert value(fetchers[0], 2) == 4


@pytest.mark.parametrize("error", [pytest.fail.Exception, SystemExit, asyncio.CancelledError])
def test_an_error_that_is_no_exception_settles_its_key_and_stops_nothing(
    fetchers: list[Prefetcher[int, int]], error: type[BaseException]
) -> None:
    async def fetch(key: int) -> int:
        if key == 1:
            raise error
        return key * key

    fetchers.append(Prefetcher([[1, 2]], fetch, width=1))

    with pytest.raises(error):
        value(fetchers[0], 1)

    assert value(fetchers[0], 2) == 4


def test_stopping_cancels_what_is_in_flight_drops_the_rest_and_closes(source: Source) -> None:
    fetcher = Prefetcher([KEYS], source.fetch, width=2, close=source.close)
    source.wait_for(2)

    fetcher.stop(PATIENCE_S)

    assert sorted(source.cancelled) == [0, 1]
    assert source.started == [0, 1]
    assert source.closed.is_set()
    with pytest.raises(CancelledError):
        value(fetcher, 9)


def test_stopping_twice_does_no_harm(source: Source) -> None:
    fetcher = Prefetcher([KEYS], source.fetch, width=2)

    fetcher.stop(PATIENCE_S)
    fetcher.stop(PATIENCE_S)

    assert fetcher.futures[0].cancelled()


def test_values_that_came_before_the_stop_stay(source: Source) -> None:
    source.let_go()
    fetcher = Prefetcher([KEYS], source.fetch, width=2)
    found = value(fetcher, 3)

    fetcher.stop(PATIENCE_S)

    assert value(fetcher, 3) == found == 9


def test_what_closing_raises_is_raised_by_stopping(source: Source) -> None:
    async def cling() -> None:
        raise LookupError("it stays")

    fetcher = Prefetcher([KEYS], source.fetch, width=2, close=cling)

    with pytest.raises(LookupError, match="it stays"):
        fetcher.stop(PATIENCE_S)

    assert fetcher.futures[0].cancelled()


def test_nothing_to_fetch_is_no_error(source: Source) -> None:
    fetcher: Prefetcher[int, int] = Prefetcher([], source.fetch, width=2, close=source.close)

    fetcher.stop(PATIENCE_S)

    assert source.closed.is_set()
