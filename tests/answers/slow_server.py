"""Slow servers of several kinds, in made-up time that passes only while everybody waits."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pytest_upskill.answers.budget import Budget
from pytest_upskill.answers.prices import Prices
from pytest_upskill.answers.progress import InFlight
from pytest_upskill.answers.retry import HostClient, Pace, Retries
from pytest_upskill.models import Completion, ProviderError, Request
from tests.answers.retrying import ANSWER, request


class _Selector(selectors.DefaultSelector):
    """A selector that, where it should wait, moves the clock instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0
        return super().select(0)


class MadeUpTime(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._made_up = _Selector()
        super().__init__(self._made_up)

    def time(self) -> float:
        return self._made_up.now


@dataclass
class SlowServer:
    """Answers as many at a time as it has slots; what is cancelled frees its slot."""

    slots: int
    seconds: Callable[[int], float]
    """Time that the n-th request takes in a slot."""
    timeout: float = 120
    order: random.Random | None = None
    """Draws which of the waiting requests is next; None for the first of them."""
    busy: float = 0.0
    """Slot time spent on answers."""
    wasted: float = 0.0
    """Slot time spent on requests that were cancelled."""
    peak: int = 0
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)
    _open: int = 0

    async def complete(self, request: Request) -> Completion:
        self._open += 1
        self.peak = max(self.peak, self._open)
        try:
            await self._wait_for_slot()
            try:
                await self._serve(self.seconds(request.run))
            finally:
                self._free_slot()
        finally:
            self._open -= 1
        return ANSWER

    async def _wait_for_slot(self) -> None:
        if self.slots:
            self.slots -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiting.remove(turn)
            else:
                self._free_slot()
            raise

    def _free_slot(self) -> None:
        waiting = [turn for turn in self._waiting if not turn.cancelled()]
        if not waiting:
            self.slots += 1
            return
        turn = self.order.choice(waiting) if self.order else waiting[0]
        self._waiting.remove(turn)
        turn.set_result(None)

    async def _serve(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.wasted += loop.time() - started
            raise
        self.busy += seconds

    async def aclose(self) -> None:
        pass


@dataclass
class SharedServer:
    """Works on all requests at once, each of which slows the others down."""

    work: float
    """Seconds of a request that has the server for itself."""
    timeout: float = 120
    busy: float = 0.0
    wasted: float = 0.0
    peak: int = 0
    _open: int = 0

    async def complete(self, _: Request) -> Completion:
        self._open += 1
        self.peak = max(self.peak, self._open)
        left = self.work
        try:
            while left > 0:
                await asyncio.sleep(0.1)
                left -= 0.1 / self._open
        except asyncio.CancelledError:
            self.wasted += self.work - left
            raise
        finally:
            self._open -= 1
        self.busy += self.work
        return ANSWER

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class Session:
    answered: int
    seconds: float
    wasted: float
    """Share of the slot time."""
    peak: int
    errors: frozenset[str]
    """The messages of errors."""


def run(server: SlowServer | SharedServer, answers: int) -> Session:
    """Request so many answers, all at once."""

    async def ask() -> tuple[list[Completion | BaseException], float]:
        loop = asyncio.get_running_loop()
        pace = Pace(20, timeout=server.timeout)
        pace.clock = loop.time
        activity = InFlight(clock=loop.time)
        retries = Retries(pace=pace, host="a.invalid", activity=activity)
        client = HostClient(server, retries, Budget(None, Prices({})))
        asking = (client.complete(request(run)) for run in range(answers))
        got = await asyncio.gather(*asking, return_exceptions=True)
        return got, loop.time()

    with asyncio.Runner(loop_factory=MadeUpTime) as runner:
        got, seconds = runner.run(ask())
    return Session(
        answered=sum(isinstance(each, Completion) for each in got),
        seconds=seconds,
        wasted=server.wasted / max(server.busy + server.wasted, 1e-9),
        peak=server.peak,
        errors=frozenset(str(each) for each in got if isinstance(each, ProviderError)),
    )
