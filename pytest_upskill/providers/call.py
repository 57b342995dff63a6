"""Requests through either SDK: what a reply says, or one class for all errors."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from json import JSONDecodeError
from typing import Any

import httpx2

from pytest_upskill.completion import Completion, ProviderError, Request, clean
from pytest_upskill.providers.connections import MOST_BYTES, NOT_SENT, ReplyTooLong
from pytest_upskill.providers.error_body import (
    code_of,
    detail,
    is_filtered,
    one_line,
    place,
    retry_after,
    status_of,
)
from pytest_upskill.providers.error_hints import (
    CALL_TOOLS,
    LOADING,
    NO_TOOLS,
    SHORTEN,
    cure,
    doubt_of_connection,
    doubt_of_url,
    not_served,
)
from pytest_upskill.providers.keys import Endpoint
from pytest_upskill.wire.fields import ErrorReply

_ELSEWHERE = frozenset({404, 405, 410, 501})
"""Statuses that say that nothing is served under this URL, or not for such requests."""
_FATAL = frozenset({301, 302, 303, 307, 308, 401, 402, 403}) | _ELSEWHERE
_PASSING = frozenset({408, 409, 429})


class _Filtered(Exception):  # noqa: N818  describes a reply, not a failure here
    """A refusal by a content filter, reported with an error status; the message is the host's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt to send a request."""

    request: Request
    endpoint: Endpoint

    async def complete(
        self,
        sent: Awaitable[httpx2.Response],
        sdk: Any,
        read: Callable[[Mapping[str, Any]], Completion],
    ) -> Completion:
        """Await an SDK's call and read the answer; convert all failures to ProviderError.

        Args:
            sent: The SDK's call, which returns the HTTP response: the SDK's classes of replies
                would take a tenth of a request's CPU time and validate nothing.
            sdk: The SDK's module, whose exceptions have the same names in both SDKs.
            read: Reads the completion from the body of a reply. AttributeError, LookupError and
                TypeError mean that the reply is malformed, ErrorReply that it is an error.

        Raises:
            ProviderError: There is no usable reply.
        """
        started = time.perf_counter()
        try:
            body, headers = await self._reply(sent, sdk)
            latency_s = time.perf_counter() - started
            completion = read(body)
        except _Filtered as refusal:
            # Without counts, so that its maximum cost counts: Azure bills prompt and answer, see
            # https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter.
            return Completion(
                text=self.endpoint.redact(clean(str(refusal))),
                input_tokens=None,
                output_tokens=None,
                stop_reason="refusal",
            )
        except ErrorReply as error:
            raise self._unusable(error.body) from None
        except (AttributeError, LookupError, TypeError):
            raise self._unusable(body) from None
        # Redacted again: parts were joined.
        redact, served = self.endpoint.redact, body.get("model")
        calls = (replace(call, name=redact(clean(call.name))) for call in completion.tool_calls)
        return replace(
            completion,
            text=redact(completion.text),
            reasoning=redact(completion.reasoning),
            tool_calls=tuple(calls),
            # Only a request with tools is followed by another of the same conversation.
            assistant_blocks=completion.assistant_blocks if self.request.tools else (),
            served_model=clean(served) if isinstance(served, str) else None,
            request_id=headers.get("request-id") or headers.get("x-request-id"),
            latency_s=latency_s,
        )

    async def _reply(
        self, sent: Awaitable[httpx2.Response], sdk: Any
    ) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """Return the redacted JSON object of a reply with status 200, and its headers."""
        # Redact before anything is read: a key cannot be found in a shortened text. Use `from
        # None`, because the messages of SDKs are not redacted.
        redactor = self.endpoint.redactor
        try:
            response = await sent
            body = redactor.redact_json(_read(response))
        except sdk.APIStatusError as error:
            body, headers = redactor.redact_json(error.body), self._headers(error.response)
            if error.status_code == HTTPStatus.BAD_REQUEST and is_filtered(body):
                raise _Filtered(detail(body)) from None
            raise self.refused(error.status_code, body, headers) from None
        except sdk.APIConnectionError as error:
            raise self._unreachable(error) from None
        except ReplyTooLong:  # from one SDK; the other wraps it in an APIConnectionError
            raise self._too_long() from None
        except (JSONDecodeError, UnicodeDecodeError) as error:
            why = f"{self.endpoint.host} sent invalid JSON ({error})"
            raise self._error(why, status=200, retryable=True) from None
        except Exception as error:  # noqa: BLE001  an SDK's: the run is missing data
            message = detail(self.endpoint.redact(str(error)))
            raise self._error(f"{type(error).__name__}: {message}") from None
        if not isinstance(body, Mapping):
            raise self._unusable(body)
        return body, self._headers(response)

    def _headers(self, response: httpx2.Response) -> Mapping[str, str]:
        redact = self.endpoint.redact
        return {name.lower(): redact(value) for name, value in response.headers.items()}

    def refused(self, status: int, body: object, headers: Mapping[str, str]) -> ProviderError:
        """Make the error for an HTTP status.

        As in both SDKs, statuses 408, 409, 429 and 5xx are retryable, unless the header
        ``x-should-retry`` says otherwise.
        """
        broke = status == HTTPStatus.TOO_MANY_REQUESTS and code_of(body) == "insufficient_quota"
        passing = status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        passing = passing and status not in _ELSEWHERE
        retryable = {"true": True, "false": False}.get(
            headers.get("x-should-retry", ""), passing and not broke
        )
        message = " ".join(part for part in (f"HTTP {status}", detail(body)) if part)
        way_out = self._cure(status, headers, message)
        if self.request.tools and NO_TOOLS.search(message):
            retryable, way_out = False, CALL_TOOLS
        too_long = way_out == SHORTEN or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return self._error(
            ": ".join(part for part in (message, way_out) if part),
            status=status,
            retryable=retryable,
            retry_after=retry_after(headers),
            loading=status == HTTPStatus.SERVICE_UNAVAILABLE and bool(LOADING.search(message)),
            of_request=too_long or way_out == CALL_TOOLS,
            # Without tools, the model may answer.
            fatal=(status in _FATAL or broke) and not retryable and way_out != CALL_TOOLS,
        )

    def _unusable(self, reply: object) -> ProviderError:
        """Make the error for a reply with status 200 that is not an answer.

        Some hosts send errors with status 200. They are treated like the status that they contain,
        but as billable, because the answer may have begun.
        """
        status = status_of(code_of(reply))
        if status is not None:
            error = self.refused(status, reply, {})
            error.billable = True
            return error
        host, message = self.endpoint.host, detail(reply)
        if message and isinstance(reply, Mapping):
            return self._error(f"{host} sent an error with HTTP 200: {message}", status=200)
        what = message or detail(str(reply)) or "nothing"
        bare = " without /v1" if doubt_of_url(self.endpoint) else ""
        return self._error(
            f"{host} sent {what} instead of an API reply: is the base URL right{bare}?",
            status=200,
        )

    def _cure(self, status: int, headers: Mapping[str, str], message: str) -> str:
        match status:
            case 400 | 413 | 422:
                return cure(message, self.request.model.parameters)
            case 301 | 302 | 303 | 307 | 308:
                return f"{self.endpoint.host} redirects to {place(headers.get('location', ''))}"
            case 401 | 403:
                return f"check {self.endpoint.key_variable}"
            case 402:
                return f"check the billing of the account that owns {self.endpoint.key_variable}"
            case 404 | 405 | 410 | 501:
                return not_served(status, self.request.model, self.endpoint)
        return ""

    def _unreachable(self, error: Exception) -> ProviderError:
        cause = error.__cause__ or error
        if isinstance(cause, ReplyTooLong):
            return self._too_long()
        why = str(cause) or type(cause).__name__
        doubt = doubt_of_connection(cause, self.endpoint, self.request.model)
        # Without the label: it is the host's trouble, and the same for all of its models.
        line = f"no connection to {self.endpoint.host} ({why}): {doubt}"
        return ProviderError(
            self.endpoint.redact(one_line(line)),
            retryable=True,
            billable=not isinstance(cause, NOT_SENT),
        )

    def _too_long(self) -> ProviderError:
        return self._error(
            f"{self.endpoint.host} sent more than {MOST_BYTES >> 20} MiB", status=200
        )

    def _error(self, message: str, **details: Any) -> ProviderError:
        line = self.endpoint.redact(one_line(message))
        return ProviderError(f"{self.request.model.label}: {line}", **details)


def _read(response: httpx2.Response) -> object:
    """Return the JSON of a reply, or its text if its content type is not JSON.

    Raises:
        ValueError: The JSON is invalid.
    """
    try:
        return response.json()
    except ValueError:
        if "json" in response.headers.get("content-type", "json"):
            raise
        return response.text
