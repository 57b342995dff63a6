"""Problems of a file, one line each: place, problem, fix."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_upskill.project.messages import safe_line

MAX_SHOWN = 40
"""Maximum number of characters of a wrong value in a message."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One problem in a file."""

    line: int = 0
    """From 1; 0 for the file as a whole."""
    column: int = 0
    """From 1, in characters."""
    where: str = ""
    """The entry, such as ``cases[1].expected.regex``; empty for the whole document."""
    what: str
    """What is wrong and how to fix it, in one line."""

    @classmethod
    def in_text(cls, text: str, offset: int, what: str) -> Problem:
        """Make a problem at an offset in characters of a file's text."""
        line = text.count("\n", 0, offset) + 1
        return cls(line=line, column=offset - text.rfind("\n", 0, offset), what=what)

    def at(self, path: str) -> str:
        """Return the problem as one safe line, ``path:line:column: where: what``."""
        place = f"{path}:{self.line}:{self.column}" if self.line else path
        return safe_line(": ".join(part for part in (place, self.where, self.what) if part))


class BadFile(Exception):  # noqa: N818  it names the file, whose errors are its problems
    """A file that cannot be used.

    Attributes:
        problems: All problems that were found, in the order of the file.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(problem.what for problem in self.problems))


def shown(value: object) -> str:
    """Return a wrong value as JSON, shortened to `MAX_SHOWN` characters."""
    text = json.dumps(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
