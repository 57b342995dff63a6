"""Languages and checks that plugins add to case files."""

import os
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_upskill.checks.blocks import LANGUAGES, RUNNABLE, canonical

_CALLERS = frozenset({"concurrent", "pluggy", "pytest_upskill"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """A key of ``expected`` that a plugin claims; the plugin's hook decides it."""

    name: str
    """The key."""
    value: Any
    """The value of the key in the case file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """Everything that plugins add to case files."""

    languages: Mapping[str, str] = field(default_factory=dict)
    """Maps every spelling of a plugin's language to its name."""
    runnable: frozenset[str] = RUNNABLE
    """Names of the languages that ``run`` checks support."""
    claims: Callable[[str, object], bool] = lambda _name, _value: False
    """Whether a plugin decides a check of this name; raises ValueError for an invalid value."""

    def language(self, word: str) -> str | None:
        """Return the name of the language that ``word`` means, None if it is unknown."""
        return canonical(word) or self.languages.get(word.strip().lower())

    @property
    def known_languages(self) -> tuple[str, ...]:
        """The names of all languages."""
        return tuple(dict.fromkeys((*LANGUAGES, *self.languages.values())))


NO_EXTENSIONS = Extensions()
"""The extensions of a session without plugins."""


def describe_exception(error: BaseException) -> str:
    """Return in one line the exception that a plugin's code raised, with its place."""
    words = str(error).encode("utf-8", "replace").decode().split()
    text = f"{type(error).__name__}: {' '.join(words)}"
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _CALLERS:
            return f"{text} ({os.path.relpath(frame.f_code.co_filename)}:{line})"
    return text
