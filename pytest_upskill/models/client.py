"""The protocol of a client, which turns a request into a completion, and its error."""

from __future__ import annotations

from http import HTTPStatus
from typing import Protocol

from pytest_upskill.models.completion import Completion
from pytest_upskill.models.request import Request


class Client(Protocol):
    """A client of one endpoint; a session has one of each, used on one event loop.

    A plugin's client that sends `Request.tools` and `Request.turns` and reads tool calls sets
    ``accepts_tools = True``; one that sends `Model.parameters` sets ``accepts_parameters = True``.
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
        of_request: Whether this request's length or tools caused it, so that others may succeed.
        billable: Whether the host may bill the request; by default True, unless the status is that
            of an HTTP error.
        paid: The tokens and cost of earlier requests of the same run, None if there were none.
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
        if billable is None:
            billable = status in {None, HTTPStatus.OK}
        self.billable = billable
        self.paid: Completion | None = None
