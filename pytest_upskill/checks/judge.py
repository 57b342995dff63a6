"""Statements about an answer that only a reader can decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """The statement is true of the answer; a judge model decides, without one nobody does."""

    name: ClassVar[str] = "judge"

    statement: str
