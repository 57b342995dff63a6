"""Cache of build results across sessions, so that unchanged code is not built again."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.compile.toolchain import Built
from pytest_upskill.repository.files import read_state, write_file


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
