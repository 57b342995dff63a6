"""Fetch values before they are needed: in order, concurrently, on one background loop."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import MappingProxyType
from typing import Generic, TypeVar

from pytest_upskill.models.clients import is_cancellation

K = TypeVar("K")
T = TypeVar("T")


class Prefetcher(Generic[K, T]):
    """Values that are fetched on a daemon thread, in the order in which they will be needed.

    Each lane of keys (a host, say) starts its keys in order, on its own, so that a slow lane never
    delays another. A key that is needed out of order moves to the front of its lane.

    Args:
        lanes: Keys of each lane, in the order in which they will be waited for.
        fetch: Gets the value of a key; its exceptions are raised where the key is waited for.
        width: Maximum number of fetches at a time in one lane.
        in_order: Whether a key keeps its position, even if it is waited for.
        lookahead: Maximum number of keys that start without being waited for, so that stopping
            early wastes no more than that; None for no limit.
        is_final: Returns whether a value stands; the key of another is fetched once more after all
            others of its lane. Not with ``in_order`` or ``lookahead``: others may wait for it.
        known: Values of further keys, which need no fetch.
        close: Releases what ``fetch`` opened on the loop; its exceptions are raised by ``stop``.
    """

    def __init__(
        self,
        lanes: Iterable[Iterable[K]],
        fetch: Callable[[K], Awaitable[T]],
        *,
        width: int,
        in_order: bool = False,
        lookahead: int | None = None,
        is_final: Callable[[T], bool] = lambda _: True,
        known: Mapping[K, T] = MappingProxyType({}),
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._queues = [OrderedDict.fromkeys(lane) for lane in lanes]
        self._queue_of = {key: queue for queue in self._queues for key in queue}
        self._futures: dict[K, Future[T]] = {key: Future() for key in self._queue_of}
        for key, value in known.items():
            self._futures[key] = Future()
            self._futures[key].set_result(value)
        self._fetch = fetch
        self._is_final = is_final
        self._fetched_again: set[K] = set()
        self._close = close
        self._close_error: Exception | None = None
        self._width = width
        self._in_order = in_order
        self._lookahead = lookahead
        self._prioritized: set[K] = set()
        self._started = 0
        self._loop = asyncio.new_event_loop()
        self._priorities_changed = asyncio.Event()
        self._stopped = asyncio.Event()
        # Daemon: a hung connection must never keep pytest from exiting.
        self._thread = threading.Thread(target=self._run, name="upskill-fetch", daemon=True)
        self._thread.start()

    def prioritize(self, key: K) -> None:
        """Move a key to the front, as it is needed now."""
        # Waking the loop takes time, so it is not done for a key that has started, unless this
        # lets another key start.
        queue = self._queue_of.get(key)
        if queue is not None and (self._lookahead is not None or key in queue):
            self._call_on_loop(self._prioritize, key)

    def future(self, key: K) -> Future[T]:
        """Return the future of ``key``; prioritize it before waiting for it."""
        return self._futures[key]

    def stop(self, timeout: float = 2.0) -> None:
        """Cancel running fetches, drop queued keys, and close; wait at most ``timeout`` seconds."""
        self._call_on_loop(self._stopped.set)
        self._thread.join(timeout)
        if self._close_error is not None:
            raise self._close_error

    def _call_on_loop(self, function: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: every future is settled
            self._loop.call_soon_threadsafe(function, *args)

    # What follows runs on the background thread.

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._run_workers())
        except Exception as error:  # noqa: BLE001  of what is closed; raised by stop()
            self._close_error = error
        finally:
            for future in self._futures.values():
                future.cancel()
            self._loop.close()

    async def _run_workers(self) -> None:
        workers = [
            asyncio.create_task(self._fetch_queue(queue))
            for queue in self._queues
            for _ in range(min(self._width, len(queue)))
        ]
        try:
            await self._stopped.wait()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            if self._close is not None:
                await self._close()

    async def _fetch_queue(self, queue: OrderedDict[K, None]) -> None:
        while queue:
            key = next(iter(queue))
            if not self._may_start(key):
                self._priorities_changed.clear()
                await self._priorities_changed.wait()
                continue
            del queue[key]
            self._started += 1
            future = self._futures[key]
            try:
                value = await self._fetch(key)
            except BaseException as error:
                if is_cancellation(error):
                    raise
                future.set_exception(error)  # raised where the key is waited for
            else:
                if self._is_final(value) or not self._may_fetch_again(key):
                    future.set_result(value)
                else:
                    self._fetched_again.add(key)
                    queue[key] = None  # at its end

    def _may_fetch_again(self, key: K) -> bool:
        waits = self._in_order or self._lookahead is not None
        return not waits and key not in self._fetched_again

    def _may_start(self, key: K) -> bool:
        if self._lookahead is None or key in self._prioritized:
            return True
        return self._started < len(self._prioritized) + self._lookahead

    def _prioritize(self, key: K) -> None:
        self._prioritized.add(key)
        queue = self._queue_of[key]
        if key in queue and not self._in_order and key not in self._fetched_again:
            queue.move_to_end(key, last=False)
        self._priorities_changed.set()
