"""What a model is sent for one run, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Literal

from pydantic import Field

from pytest_upskill.model import Model

StopReason = Literal["end", "max_tokens", "refusal", "other"]

MAX_TOKENS_COUNTED = 10**9
"""More tokens than any request has: a larger count is a mistake of whoever counted."""

# Where a completion is read from JSON, or from a plugin, these bounds are checked.
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS_COUNTED)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Attempts = Annotated[int, Field(ge=1, le=MAX_TOKENS_COUNTED)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Everything one run of a trial sends, and nothing else.

    The arms of a case differ in ``skill`` alone: ``frame``, ``user`` and the parameters are
    the same bytes in all of them.
    """

    model: Model
    frame: str
    """System text every arm gets."""
    skill: str
    """Skill block, appended to ``frame``; empty in the ``without_skill`` arm."""
    user: str
    max_tokens: int
    run: int
    """Index of the repeat, from 0; part of the identity, so that five runs are five answers."""

    @property
    def system(self) -> str:
        """The whole system prompt."""
        return self.frame + self.skill


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One answer of one run."""

    text: str
    """The answer alone: what is graded."""
    input_tokens: Tokens | None
    """All prompt tokens, cached ones included; None where the server does not count."""
    output_tokens: Tokens | None
    """All generated tokens, hidden reasoning included."""
    cache_read_tokens: Tokens = 0
    cache_write_tokens: Tokens = 0
    stop_reason: StopReason = "end"
    reasoning: str = ""
    """What the model wrote before its answer, as far as it shows that."""
    tool_calls: tuple[str, ...] = ()
    """Names of the tools that it tried to call, though it was given none."""
    served_model: str | None = None
    """The model id the API says it used."""
    request_id: str | None = None
    latency_s: Amount = 0.0
    """Seconds from sending the successful attempt to its whole reply."""
    attempts: Attempts = 1
    cost_usd: Amount | None = None
    """Dollars; None where the price is not known."""
    replayed: bool = False
    """Whether the answer is a recording; tokens, cost and seconds are those of the record."""

    @property
    def tokens(self) -> int | None:
        """Prompt and answer together, None where the server did not count both."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


def clean(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 file and no other process can take."""
    return text.encode("utf-8", "replace").decode()


class ProviderError(Exception):
    """No usable reply: the run is missing data, never a failed check.

    Attributes:
        status: HTTP status, None where no reply came.
        retryable: Whether asking again may help.
        retry_after: Seconds the server asked to wait, None where it did not say.
        fatal: Whether every further request to this model would fail alike (bad key, no model).
        loading: Whether the host is about to answer, once it has loaded the model.
        billable: Whether the host may bill the request all the same; where nothing says so, unless
            it replied with an HTTP error.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        fatal: bool = False,
        loading: bool = False,
        billable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.fatal = fatal
        self.loading = loading
        self.billable = status in {None, HTTPStatus.OK} if billable is None else billable
