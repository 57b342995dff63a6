"""Work that is done once, also when several threads ask for it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from types import TracebackType
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """Keeps what was made for a key, an exception included."""

    def __init__(self) -> None:
        self._made: dict[K, Future[V]] = {}
        self._tracebacks: dict[K, TracebackType | None] = {}
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return what ``make`` gave for ``key``, calling it unless some thread has."""
        with self._lock:
            found = self._made.get(key)
            mine = self._made.setdefault(key, Future())
        if found is None:
            try:
                mine.set_result(make())
            except BaseException as error:  # noqa: BLE001 - whoever waits must get it too
                self._tracebacks[key] = error.__traceback__
                mine.set_exception(error)
        failure = mine.exception()
        if failure is None:
            return mine.result()
        # Back to what it was when it was cached: each raise would make its traceback longer.
        raise failure.with_traceback(self._tracebacks[key])
