"""Statements about an answer that a judge model decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A check that a statement is true of the answer; undecided without a judge model."""

    name: ClassVar[str] = "judge"

    statement: str
