"""The limits of a run of an agent, besides turns, which its case sets, and cost: see `Budget`."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_upskill.models import MAX_RUN_REQUESTS, MAX_RUN_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits of one run; a run that would exceed one fails and names it."""

    requests: int = MAX_RUN_REQUESTS
    tokens: int = MAX_RUN_TOKENS
    """Tokens of all prompts and answers."""
    seconds: float = 300.0
    """Time of the agent and its tools, without the time that the provider takes."""

    def exceeded_limit(
        self, *, turns: int, max_turns: int, requests: int, tokens: int, prefix_tokens: int
    ) -> str:
        """Return the limit that the next request would exceed, "" for none.

        Args:
            turns: Replies of the model so far.
            max_turns: The case's limit of turns.
            requests: Requests so far.
            tokens: Tokens of all prompts and answers so far.
            prefix_tokens: Tokens that the next prompt begins with: the conversation so far.
        """
        if turns >= max_turns:
            return f"it needs more than {max_turns} turn{'s' * (max_turns != 1)}"
        if requests >= self.requests:
            return f"it needs more than {self.requests} requests"
        if tokens + prefix_tokens > self.tokens:
            return f"it needs more than {self.tokens:,} tokens"
        return ""
