"""One call of either SDK: its HTTP client, and its completion or one class of error."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from json import JSONDecodeError
from typing import Any, ClassVar

import httpx2

from pytest_upskill.models import errors
from pytest_upskill.models.completion import Completion, clean
from pytest_upskill.models.content import failed_part
from pytest_upskill.models.keys import NO_KEY, PROTOCOL_HEADERS, Endpoint
from pytest_upskill.models.model import Model
from pytest_upskill.models.request import ProviderError
from pytest_upskill.models.streams import MAX_REPLY, Format, is_stream, is_whole, read_reply

Read = Callable[[Mapping[str, Any]], Completion]
"""Reads a reply; AttributeError, LookupError and TypeError mean that it is malformed."""

NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
"""Errors that occur before any part of a request is sent."""

CONNECT_S = 10.0
"""Seconds until a connection must be made."""
_KEEPALIVE_S = 120.0
_SECRET_HEADER = re.compile("auth|key|token|secret|cookie|credential")
_BODY_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class _ReplyTooLong(httpx2.TransportError):
    """A reply of more than ``MAX_REPLY``, whose rest was not read."""


class _BoundedClient(httpx2.AsyncClient):
    """An HTTP client that limits the size of replies."""

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request and read the reply.

        Raises:
            _ReplyTooLong: The reply has more than ``MAX_REPLY``.
        """
        assert not stream
        response = await super().send(request, stream=True, **options)
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_REPLY:
                    raise _ReplyTooLong(f"more than {MAX_REPLY >> 20} MiB")
        finally:
            await response.aclose()
        headers = [(k, v) for k, v in response.headers.multi_items() if k not in _BODY_HEADERS]
        return httpx2.Response(
            response.status_code,
            headers=headers,
            content=bytes(body),
            request=request,
            extensions=response.extensions,
        )


class SdkClient:
    """What the clients of both SDKs share.

    Args:
        endpoint: The endpoint of all requests.
        module: The SDK.
        make: Makes the SDK's client from the arguments that both share.
    """

    options: ClassVar[Mapping[str, Any]] = {}
    """The SDK's options of every request."""

    def __init__(self, endpoint: Endpoint, module: Any, make: Callable[..., Any]) -> None:
        self._endpoint, self._module = endpoint, module
        # Only connecting has a timeout here; the caller limits the time of the whole request.
        timeout = httpx2.Timeout(None, connect=CONNECT_S)
        if endpoint.client:
            key, hook = {"api_key": endpoint.key} if endpoint.key else {}, _learn_keys
        else:
            key, hook = {"api_key": NO_KEY}, _replace_headers
        bounded = type("BoundedClient", (_BoundedClient, module.DefaultAsyncHttpxClient), {})
        client = bounded(
            timeout=timeout,
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_KEEPALIVE_S),
            # Prompts and keys must only reach the named host, not the target of a redirect.
            follow_redirects=False,
            event_hooks={"request": [partial(hook, endpoint)]},
        )
        self._sdk = make(**key, max_retries=0, timeout=timeout, http_client=client)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    # Not messages.create(), which warns of models that retire soon, and `-W error` would make that
    # a failure; nor chat.completions.create(), which spends a quarter of a request's CPU time in
    # search of aliases of keys, and no body has any.

    def _post(self, path: str, body: object = None, **more: Any) -> Any:
        """Return an awaitable of the response."""
        options = {**self.options, **more.pop("options", {})}
        return self._sdk.post(path, body=body, cast_to=httpx2.Response, options=options, **more)

    def _get(self, path: str) -> Any:
        return self._sdk.get(path, cast_to=httpx2.Response, options=self.options)

    def _call(self, model: Model, *, offers_tools: bool = False) -> Call:
        return Call(
            model=model, endpoint=self._endpoint, offers_tools=offers_tools, sdk=self._module
        )


async def _learn_keys(endpoint: Endpoint, request: httpx2.Request) -> None:
    """Add the user's headers; have the redactor learn the keys that the SDK found somewhere."""
    request.headers.update(dict(endpoint.headers))
    secrets = (text for name, text in request.headers.items() if _SECRET_HEADER.search(name))
    # A scheme, such as Bearer, may precede the key.
    endpoint.redactor.learn(*(text.rpartition(" ")[2] for text in secrets))


async def _replace_headers(endpoint: Endpoint, request: httpx2.Request) -> None:
    """Remove headers that are not meant for this host, and add its key.

    The SDKs add headers from environment variables (OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID, …).
    """
    kept = {name: text for name, text in request.headers.items() if name in PROTOCOL_HEADERS}
    own = {"user-agent": "pytest-upskill", "authorization": f"{endpoint.scheme} {endpoint.key}"}
    request.headers = httpx2.Headers(kept | own)
    request.headers.update(dict(endpoint.headers))


_FATAL = frozenset({401, 402, 403, 407}) | errors.REDIRECTS | errors.NOT_SERVED
_TEMPORARY = frozenset({408, 409, 429})


class _FilteredError(ProviderError):
    """A refusal by a content filter: an answer, unless it is about a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt to send a request."""

    model: Model
    endpoint: Endpoint
    offers_tools: bool = False
    """Whether the request offers tools."""
    sdk: Any = None
    """The SDK's module, whose exceptions have the same names in both SDKs."""

    async def complete(
        self, sent: Awaitable[httpx2.Response], wire: Format, read: Read
    ) -> Completion:
        """Wait for the SDK's response and read the answer in its wire format.

        Raises:
            ProviderError: There is no usable reply, or the SDK fails.
        """
        # The HTTP response: to build the SDK's class of the reply would take a tenth of a request's
        # CPU time and validate nothing.
        started = time.perf_counter()
        try:
            body, headers = await self._reply(sent, partial(_read, wire=wire))
        except _FilteredError:
            # Without counts, so that its maximum cost counts: Azure bills prompt and answer, see
            # https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter.
            # The message is the host's, and no answer to grade.
            return Completion(text="", input_tokens=None, output_tokens=None, stop_reason="refusal")
        completion = self.completion(body, read)
        return replace(
            completion,
            request_id=headers.get("request-id") or headers.get("x-request-id"),
            latency_s=time.perf_counter() - started,
        )

    def completion(self, body: object, read: Read) -> Completion:
        """Read the completion from the redacted body of a reply.

        Raises:
            ProviderError: There is none in it.
        """
        if not isinstance(body, Mapping) or failed_part(body):
            raise self._unusable_error(body)
        try:
            completion = read(body)
        except (AttributeError, LookupError, TypeError):
            raise self._unusable_error(body) from None
        # Redacted again, as joining the parts of a text may have completed a key.
        redact, served = self.endpoint.redactor.redact, body.get("model")
        calls = (replace(call, name=redact(clean(call.name))) for call in completion.tool_calls)
        return replace(
            completion,
            text=redact(completion.text),
            reasoning=redact(completion.reasoning),
            tool_calls=tuple(calls),
            # Only a request with tools is followed by another of the same conversation.
            assistant_blocks=completion.assistant_blocks if self.offers_tools else (),
            served_model=clean(served) if isinstance(served, str) else None,
        )

    def outcome(self, body: object, read: Read) -> Completion | ProviderError:
        """Return the completion in the body of a reply in a batch, or why there is none."""
        try:
            return self.completion(body, read)
        except ProviderError as error:
            return error

    async def fetch(self, sent: Awaitable[httpx2.Response], *, is_file: bool = False) -> Any:
        """Return the redacted JSON of a reply about a batch, or of each line of a file.

        Raises:
            ProviderError: There is no usable reply.
        """
        body, _ = await self._reply(sent, _read_lines if is_file else httpx2.Response.json)
        return body

    async def _reply(
        self, sent: Awaitable[httpx2.Response], parse: Callable[[httpx2.Response], object]
    ) -> tuple[Any, Mapping[str, str]]:
        """Return the redacted content of a reply with status 200, and its headers."""
        # The whole body is redacted first, as a key cannot be found in a shortened text. `from
        # None` hides the messages of SDKs, which are not redacted.
        redactor = self.endpoint.redactor
        try:
            response = await sent
            body = redactor.redact_json(parse(response))
        except self.sdk.APIStatusError as error:
            body, headers = redactor.redact_json(error.body), self.headers(error.response)
            if error.status_code == HTTPStatus.BAD_REQUEST and errors.is_filtered(body):
                raise _FilteredError(errors.error_message(body), status=error.status_code) from None
            raise self.http_error(error.status_code, body, headers) from None
        except (self.sdk.APIConnectionError, httpx2.TransportError) as error:
            raise self.connection_error(error.__cause__ or error) from None
        except (JSONDecodeError, UnicodeDecodeError) as error:
            message = f"{self.endpoint.host} sent invalid JSON ({error})"
            raise self._error(message, status=200, retryable=True) from None
        except Exception as error:  # noqa: BLE001  raised by an SDK: the run is missing data
            text = errors.error_message(self.endpoint.redactor.redact(str(error)))
            message = f"{type(error).__name__}: {text}"
            if not self.endpoint.client:
                raise self._error(message) from None
            message = f"cannot sign in ({message}): check {self.endpoint.key_variable}"
            raise self._error(message, fatal=True, billable=False) from None
        return body, self.headers(response)

    def headers(self, response: httpx2.Response) -> Mapping[str, str]:
        """Return the redacted headers of a response, with names in lower case."""
        redact = self.endpoint.redactor.redact
        return {name.lower(): redact(value) for name, value in response.headers.items()}

    def http_error(self, status: int, body: object, headers: Mapping[str, str]) -> ProviderError:
        """Make the error for an HTTP status.

        As in both SDKs, statuses 408, 409, 429 and 5xx are retryable, unless the header
        ``x-should-retry`` says otherwise.
        """
        if isinstance(body, list) and len(body) == 1:  # Gemini's
            (body,) = body
        details = json.dumps(body, default=str)
        is_limit = status == HTTPStatus.TOO_MANY_REQUESTS
        until_tomorrow = is_limit and errors.DAILY.search(details) is not None
        out_of_quota = until_tomorrow or (is_limit and errors.code_of(body) == "insufficient_quota")
        # OpenRouter's, for a model that may answer requests without tools.
        refuses_tools = status == HTTPStatus.NOT_FOUND and self.offers_tools
        message = f"HTTP {status} {errors.error_message(body)}".rstrip()
        advice = errors.cure(status, message, headers, self.model, self.endpoint)
        if until_tomorrow:
            advice = "the limit of the day is used up: run again when it is renewed, as answers "
            advice += "are recorded, or raise it"
        retryable = (
            (status in _TEMPORARY or status >= HTTPStatus.INTERNAL_SERVER_ERROR)
            and status not in errors.NOT_SERVED
            and not out_of_quota
        )
        if (wish := headers.get("x-should-retry")) in {"true", "false"}:
            retryable = wish == "true"
        return self._error(
            f"{message}: {advice}" if advice else message,
            status=status,
            retryable=retryable,
            retry_after=errors.retry_after(headers, details),
            fatal=(status in _FATAL or out_of_quota) and not retryable and not refuses_tools,
        )

    def not_processed(self, why: str) -> ProviderError:
        """Make the error for a request of a batch that expired or was canceled."""
        return self._error(f"the batch {why} before this request: run again", billable=False)

    def _unusable_error(self, reply: object) -> ProviderError:
        """Make the error for a reply with status 200 that is not an answer.

        Some hosts send errors with status 200. They are treated like the status that they contain,
        but as billable, because the answer may have begun.
        """
        reply = failed_part(reply) or reply
        code = str(errors.code_of(reply))
        if re.fullmatch("[45][0-9]{2}", code):
            error = self.http_error(int(code), reply, {})
            error.billable = True
            return error
        host, message = self.endpoint.host, errors.error_message(reply)
        if message and isinstance(reply, Mapping):
            return self._error(f"{host} sent an error with HTTP 200: {message}", status=200)
        content = message or errors.error_message(str(reply)) or "nothing"
        doubt = " without /v1" if errors.url_hint(self.endpoint) else ""
        return self._error(
            f"{host} sent {content} instead of an API reply: is the base URL right{doubt}?",
            status=200,
        )

    def connection_error(self, cause: BaseException) -> ProviderError:
        """Make the error for a connection that failed, or ended within a reply."""
        host, reason = self.endpoint.host, str(cause) or type(cause).__name__
        if isinstance(cause, _ReplyTooLong):
            return self._error(f"{host} sent {reason}", status=200)
        # Without the model's label: the failure is the same for all models of the host.
        if re.search("incomplete|complete message", reason):
            line = (
                f"the reply of {host} broke off ({reason}): the server or a proxy ended it: look "
                "into the server's log, or raise the proxy's timeout"
            )
            return ProviderError(self._clean(line), status=200, retryable=True)
        by_proxy = isinstance(cause, httpx2.ProxyError)
        hint = errors.connection_hint(cause, self.endpoint)
        if by_proxy:
            hint = errors.refused_by_proxy(self.endpoint)
        return ProviderError(
            self._clean(f"no connection to {host} ({reason}): {hint}"),
            retryable=not by_proxy,
            fatal=by_proxy,
            billable=not isinstance(cause, NOT_SENT),
        )

    def _error(self, message: str, **details: Any) -> ProviderError:
        return ProviderError(f"{self.model.label}: {self._clean(message)}", **details)

    def _clean(self, message: str) -> str:
        return self.endpoint.redactor.redact(errors.one_line(message))


def _read_lines(response: httpx2.Response) -> object:
    return [json.loads(line) for line in response.text.split("\n") if line.strip()]


def _read(response: httpx2.Response, wire: Format) -> object:
    """Return the JSON of a reply, streamed or not, or its text if its content type is not JSON.

    Raises:
        ValueError: The JSON is invalid.
        httpx2.RemoteProtocolError: The stream ended before the answer did.
    """
    if is_stream(response.content):
        with suppress(ValueError, LookupError):
            if is_whole(body := read_reply(response.content, wire)):
                return body
        raise httpx2.RemoteProtocolError("incomplete stream")
    try:
        return response.json()
    except ValueError:
        if "json" in response.headers.get("content-type", "json"):
            raise
        return response.text
