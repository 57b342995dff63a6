from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial

import pytest

from pytest_upskill.completions import turns
from pytest_upskill.completions.turns import Turns

PATIENCE_S = 10.0


class BusyLoop:
    """An event loop on a thread of its own that always has something to do, and counts it."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.rounds = 0
        self._loop = asyncio.SelectorEventLoop(self.turns)
        self._loop.call_soon(self._go_round)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def make(self, *futures: Future[int]) -> None:
        """Make the results of futures, all at once."""
        for future in futures:
            give_out = partial(self.turns.give_out, partial(future.set_result, 7))
            self._loop.call_soon_threadsafe(give_out)

    def goes_on(self) -> bool:
        """Tell whether there is another round, however long it takes."""
        before, deadline = self.rounds, time.monotonic() + PATIENCE_S
        while self.rounds == before and time.monotonic() < deadline:
            time.sleep(0.001)
        return self.rounds > before

    def rests(self) -> bool:
        """Tell whether there is none for as long as thousands would take."""
        before = self.rounds
        time.sleep(0.05)
        return self.rounds == before

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        with self.turns.waiting([Future()]):
            self._thread.join(PATIENCE_S)
        self._loop.close()

    def _go_round(self) -> None:
        self.rounds += 1
        self._loop.call_soon(self._go_round)


@pytest.fixture
def loop() -> Iterator[BusyLoop]:
    made = BusyLoop()
    yield made
    made.stop()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a loop rest until it is needed."""
    monkeypatch.setattr(turns, "_REST_S", 2 * PATIENCE_S)


@pytest.mark.usefixtures("patient")
def test_a_loop_rests_while_what_was_waited_for_is_worked_on(loop: BusyLoop) -> None:
    future = Future[int]()

    with loop.turns.waiting([future]):
        loop.make(future)
        result = future.result(PATIENCE_S)

    assert result == 7
    assert loop.rests()


@pytest.mark.usefixtures("patient")
def test_it_goes_on_once_it_is_waited_for_again(loop: BusyLoop) -> None:
    first, second = Future[int](), Future[int]()
    with loop.turns.waiting([first]):
        loop.make(first)
        first.result(PATIENCE_S)

    with loop.turns.waiting([second]):
        loop.make(second)

        assert second.result(PATIENCE_S) == 7


@pytest.mark.usefixtures("patient")
def test_it_goes_on_until_all_is_there_that_is_waited_for(loop: BusyLoop) -> None:
    first, second = Future[int](), Future[int]()

    with loop.turns.waiting([first, second]):
        loop.make(first)
        first.result(PATIENCE_S)

        assert loop.goes_on()


@pytest.mark.usefixtures("patient")
def test_it_goes_on_where_nobody_waits(loop: BusyLoop) -> None:
    future = Future[int]()

    loop.make(future)

    assert future.result(PATIENCE_S) == 7
    assert loop.goes_on()


def test_it_goes_on_beside_slow_work(loop: BusyLoop) -> None:
    future = Future[int]()

    with loop.turns.waiting([future]):
        loop.make(future)
        future.result(PATIENCE_S)

    assert loop.goes_on()


def test_what_was_made_together_is_given_out_together(loop: BusyLoop) -> None:
    futures = [Future[int]() for _ in range(20)]

    with loop.turns.waiting(futures[:1]):
        loop.make(*futures)
        futures[0].result(PATIENCE_S)

    assert all(future.result(PATIENCE_S) == 7 for future in futures)


def test_a_loop_that_waits_for_something_gives_out_what_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "_BUSY_S", 2 * PATIENCE_S)
    future, kept = Future[int](), Turns()
    loop = asyncio.SelectorEventLoop(kept)

    async def make() -> None:
        kept.give_out(partial(future.set_result, 7))
        await asyncio.sleep(PATIENCE_S)

    task = loop.create_task(make())
    future.add_done_callback(lambda _: loop.call_soon(task.cancel))
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()

    assert future.result() == 7
