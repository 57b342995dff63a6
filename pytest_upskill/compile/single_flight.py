"""A thread-safe memo, which computes each value once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from types import TracebackType
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """A cache of values, or of the exceptions raised instead, by key."""

    def __init__(self) -> None:
        self._futures: dict[K, Future[V]] = {}
        self._tracebacks: dict[K, TracebackType | None] = {}
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of ``key``; the first call makes it, and concurrent calls wait.

        Raises:
            BaseException: Whatever the first ``make`` for this key raised.
        """
        with self._lock:
            is_first = key not in self._futures
            future = self._futures.setdefault(key, Future())
        if is_first:
            try:
                future.set_result(make())
            except BaseException as error:  # noqa: BLE001 - waiting threads must get it too
                self._tracebacks[key] = error.__traceback__
                future.set_exception(error)
        failure = future.exception()
        if failure is None:
            return future.result()
        # Restore the traceback at the time of caching: each raise would make it longer.
        raise failure.with_traceback(self._tracebacks[key])
