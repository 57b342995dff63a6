"""A language as the checks know it; plugins add their own."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_upskill.compile.running import Runner
from pytest_upskill.compile.toolchain import Toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """What builds and runs code in one language."""

    name: str
    """In lower case, as ``compile`` and ``run`` name it: ``rust``."""
    labels: tuple[str, ...] = ()
    """What else fences call it, and how its files end: ``rs``."""
    toolchain: Toolchain | None = None
    """What decides ``compile``; None where nothing does."""
    runner: Runner | None = None
    """What decides ``run``; None where nothing does."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """The name and all labels."""
        return (self.name, *self.labels)
