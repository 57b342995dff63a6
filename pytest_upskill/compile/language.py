"""Languages of ``compile`` and ``run`` checks; plugins can add more."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_upskill.compile.toolchain import Runner, Toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A language with its toolchain and its runner."""

    name: str
    """The name in ``compile`` and ``run`` checks, in lower case: ``rust``."""
    labels: tuple[str, ...] = ()
    """Further labels of code fences, and file suffixes: ``rs``."""
    toolchain: Toolchain | None = None
    """Decides ``compile`` checks; None if there is no support for them."""
    runner: Runner | None = None
    """Decides ``run`` checks; None if there is no support for them."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """The name and all labels."""
        return (self.name, *self.labels)
