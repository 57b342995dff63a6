"""The limits of a run of an agent, besides the turns of its case."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_upskill.completion import MAX_RUN_REQUESTS, MAX_RUN_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Limits of one run; a run that would exceed one is a miss that names it."""

    requests: int = MAX_RUN_REQUESTS
    tokens: int = MAX_RUN_TOKENS
    """Tokens of all prompts and answers."""
    seconds: float = 300.0
    """Time of the agent and its tools, without the time that the provider takes."""
