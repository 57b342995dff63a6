"""What a case file may hold beside what is built in: the languages and checks of plugins."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_upskill.checks.languages import LANGUAGES, RUNNABLE, canonical

_CALLERS = frozenset({"concurrent", "pluggy", "pytest_upskill"})


def _claims_nothing(name: str, value: object) -> bool:
    del name, value
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """What is known of plugins when a case file is read."""

    languages: Mapping[str, str] = field(default_factory=dict)
    """Every spelling of a plugin's language, and its name."""
    runnable: frozenset[str] = RUNNABLE
    """Names of the languages that a ``run`` check can ask for."""
    claims: Callable[[str, object], bool] = _claims_nothing
    """Whether a plugin decides a check of that name; ValueError: yes, but not with the value."""

    def language(self, word: str) -> str | None:
        """Tell the language that ``word`` means, None where nothing knows it."""
        return canonical(word) or self.languages.get(word.strip().lower())

    @property
    def known_languages(self) -> tuple[str, ...]:
        """The names of all languages."""
        return tuple(dict.fromkeys((*LANGUAGES, *self.languages.values())))


NO_EXTENSIONS = Extensions()
"""No plugin adds anything."""


def raised(error: BaseException) -> str:
    """Write what a plugin's code raised, and where it was called, in one line."""
    words = str(error).encode("utf-8", "replace").decode().split()
    said = f"{type(error).__name__}: {' '.join(words)}"
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _CALLERS:
            return f"{said} ({os.path.relpath(frame.f_code.co_filename)}:{line})"
    return said
