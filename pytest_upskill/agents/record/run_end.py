"""Why the run of an agent's program has ended; the first reason counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finished:
    """The model gave its answer, or chose a skill, or none in all its turns."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The run would have exceeded a limit: the model's miss, which the record names."""

    limit: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The host, the budget or the program ended the run: missing data."""

    error: Exception


RunEnd = Finished | LimitReached | Failed
