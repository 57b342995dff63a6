"""A client, which turns a request into a completion, and its error."""

from __future__ import annotations

from http import HTTPStatus
from typing import Protocol

from pytest_upskill.completion.completion import Completion
from pytest_upskill.completion.request import Request


class Client(Protocol):
    """A client of one endpoint; there is one per session, used on one event loop.

    A client of a plugin that sends `Request.tools` and `Request.turns`, and reads tool calls, has
    an attribute ``accepts_tools`` that is True; one that sends `Model.parameters` has
    ``accepts_parameters``.
    """

    async def complete(self, request: Request) -> Completion:
        """Send a request once, without retries, and return the completion.

        Raises:
            ProviderError: There is no usable reply.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class ProviderError(Exception):
    """A request without a usable reply; its run counts as missing, not as failed.

    Attributes:
        status: HTTP status, None without a reply.
        retryable: Whether a retry may succeed.
        retry_after: Seconds to wait before a retry, as the server requests; None if it does not.
        fatal: Whether every further request to this model would fail too (bad key, no model).
        loading: Whether the host is still loading the model.
        timed_out: Whether no reply came within the timeout.
        of_request: Whether it is due to this request's length or tools, so that others may succeed.
        billable: Whether the host may bill the request; by default, unless it replied with an HTTP
            error.
        paid: What earlier requests of the same run have cost, None if there were none.
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
        timed_out: bool = False,
        of_request: bool = False,
        billable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.fatal = fatal
        self.loading = loading
        self.timed_out = timed_out
        self.of_request = of_request
        self.billable = status in {None, HTTPStatus.OK} if billable is None else billable
        self.paid: Completion | None = None
