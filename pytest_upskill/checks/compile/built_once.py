"""Memory of build results in a session, and their cache across sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.checks.compile.toolchain import Built
from pytest_upskill.project.files import read_state, write_file


class BuildCache:
    """A folder of build results, one JSON file per build; several processes may share it.

    Args:
        folder: The folder, which is created by the first write; None to cache nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self, name: str) -> Built | None:
        """Return the result stored under ``name``, None if there is none that can be read."""
        if self._folder is not None:
            with suppress(OSError, ValidationError):
                return self._adapter.validate_json(read_state(self._folder / f"{name}.json"))
        return None

    def keep(self, name: str, built: Built) -> None:
        """Store a result under ``name`` if it is `Built.lasting`; errors in writing are ignored."""
        if self._folder is None or not built.lasting:
            return
        with suppress(OSError):  # such as a full disk: the next session builds it again
            write_file(self._folder / f"{name}.json", self._adapter.dump_json(built))

    @cached_property
    def _adapter(self) -> TypeAdapter[Built]:
        return TypeAdapter(Built)


def stamps(programs: Iterable[Path]) -> list[str]:
    """Return path, size and modification time of programs, which change with their versions."""
    lines = []
    for program in programs:
        with suppress(OSError):
            status = program.stat()
            lines.append(f"{program.resolve()} {status.st_size} {status.st_mtime_ns}")
    return lines


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
