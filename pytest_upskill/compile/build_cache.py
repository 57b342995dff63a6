"""What compilers said in earlier sessions, so that the same code is not built again."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.atomic_write import write_whole
from pytest_upskill.compile.toolchain import Built


class Remembered:
    """A folder of outcomes, one JSON file for each build; several processes may use it.

    Args:
        folder: Made when first written to; None to remember nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self, name: str) -> Built | None:
        """Find the outcome that was kept under ``name``; what cannot be read is built again."""
        if self._folder is not None:
            with suppress(OSError, ValidationError):
                return self._adapter.validate_json((self._folder / f"{name}.json").read_bytes())
        return None

    def keep(self, name: str, built: Built) -> None:
        """Keep an outcome that another session would come to as well."""
        if self._folder is None or not built.lasting:
            return
        with suppress(OSError):  # a full disk: the next session builds it
            write_whole(self._folder / f"{name}.json", self._adapter.dump_json(built))

    @cached_property
    def _adapter(self) -> TypeAdapter[Built]:
        return TypeAdapter(Built)


def stamps(programs: Iterable[Path]) -> list[str]:
    """Tell programs from their later versions without running them."""
    found = []
    for program in programs:
        with suppress(OSError):
            about = program.stat()
            found.append(f"{program.resolve()} {about.st_size} {about.st_mtime_ns}")
    return found
