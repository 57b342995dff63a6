"""The host of an agent's model: the only place where a request of an agent meets the key."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Protocol

import httpx2

from pytest_upskill.completion import ProviderError, Request
from pytest_upskill.providers.call import Call
from pytest_upskill.providers.keys import NO_KEY, Endpoint
from pytest_upskill.spending.in_flight import ASKING, InFlight
from pytest_upskill.spending.limiter import ConcurrencyLimiter, Sent
from pytest_upskill.spending.retry import RetryPolicy
from pytest_upskill.wire.stream import AgentFormat

_PATHS: Mapping[AgentFormat, str] = MappingProxyType(
    {"messages": "/v1/messages", "responses": "/responses", "chat": "/chat/completions"}
)
_MOST_ERROR = 1 << 16
_CONNECT_S = 10.0
_TOO_MANY = frozenset({429, 529})
_BETAS = frozenset(
    {
        "claude-code-20250219",
        "fine-grained-tool-streaming-2025-05-14",
        "effort-2025-11-24",
        "interleaved-thinking-2025-05-14",
        "prompt-caching-scope-2026-01-05",
    }
)
"""Beta features of Anthropic's API that change neither price nor what the host does."""


class Reply(Protocol):
    """A reply with status 200 that has begun."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers."""
        ...

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body as they arrive."""
        ...


class Upstream(Protocol):
    """Whoever replies to the requests of an agent's model."""

    def reply(
        self, asked: Request, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> Any:  # an async context manager of Reply
        """Send a request, and return a context manager of the reply.

        Raises:
            ProviderError: There is no usable reply.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class HostUpstream:
    """The host itself; retries a request as long as no byte of a reply was passed on.

    Args:
        endpoint: The host and its key.
        wire: The format of the requests.
        timeout: Seconds until the reply must begin, and between its parts.
        slots: The limit of requests in flight at the host.
        activity: The record of requests and waits.
        patience: The limits of retries.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        wire: AgentFormat,
        *,
        timeout: float,
        slots: ConcurrencyLimiter,
        activity: InFlight,
        patience: RetryPolicy | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._url = endpoint.url + _PATHS[wire]
        self._timeout = timeout
        self._slots = slots
        self._activity = activity
        self._patience = patience or RetryPolicy()
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_S), pool=None),
            limits=httpx2.Limits(max_connections=None),
            # Prompts and keys must only reach the named host, not the target of a redirect.
            follow_redirects=False,
            trust_env=endpoint.own,
        )

    @asynccontextmanager
    async def reply(
        self, asked: Request, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncIterator[httpx2.Response]:
        """See `Upstream.reply`; a reply that breaks off raises ProviderError too."""
        content = json.dumps(body).encode("utf-8", "replace")
        call = Call(request=asked, endpoint=self._endpoint, timeout=self._timeout)
        started, failures = time.monotonic(), 0
        while True:
            async with self._slots.slot() as sent:
                with self._activity.doing(ASKING):
                    result = await self._attempt(call, content, self._headers(headers), sent)
                if isinstance(result, httpx2.Response):
                    try:
                        yield result
                    except httpx2.HTTPError as error:
                        self._slots.failed()
                        why = self._endpoint.redact(str(error) or type(error).__name__)
                        raise ProviderError(
                            f"{asked.model.label}: the reply of {self._endpoint.host} broke off "
                            f"({why})"
                        ) from None
                    finally:
                        await result.aclose()
                    self._slots.answered(sent)
                    return
            failures += 1
            pause = self._pause(result, failures)
            out_of_time = time.monotonic() - started + pause > self._patience.deadline
            silent = result.status is None and failures >= self._patience.attempts_at_silence
            # A request is settled once, so it must not be billed twice.
            billed = result.status is None and result.billable
            if not result.retryable or out_of_time or silent or billed:
                raise result
            self._activity.pause(self._endpoint.host, f"HTTP {result.status or 'silence'}", pause)
            await asyncio.sleep(pause)

    async def aclose(self) -> None:
        """See `Upstream.aclose`."""
        await self._http.aclose()

    async def _attempt(
        self, call: Call, content: bytes, headers: Mapping[str, str], sent: Sent
    ) -> httpx2.Response | ProviderError:
        """Send a request once; return the reply that has begun, or why there is none."""
        request = self._http.build_request("POST", self._url, content=content, headers=headers)
        try:
            response = await self._http.send(request, stream=True)
        except httpx2.TransportError as error:
            if isinstance(error, httpx2.ReadTimeout):
                self._slots.timed_out(sent)
            else:
                self._slots.failed()
            why = self._endpoint.redact(str(error) or type(error).__name__)
            return ProviderError(
                f"{call.request.model.label}: no reply from {self._endpoint.host} ({why})",
                retryable=True,
                billable=not isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)),
            )
        if response.status_code == HTTPStatus.OK:
            return response
        if response.status_code in _TOO_MANY:
            self._slots.refused()
        else:
            self._slots.failed()
        try:
            said = await _error_body(response)
        finally:
            await response.aclose()
        redact = self._endpoint.redactor.redact_json
        told = {name.lower(): value for name, value in response.headers.items()}
        return call.refused(response.status_code, redact(said), redact(told))

    def _pause(self, error: ProviderError, failures: int) -> float:
        policy = self._patience
        wait: float = min(policy.first_backoff * 2 ** (failures - 1), policy.longest_backoff)
        wait += random.uniform(0, policy.first_backoff)  # noqa: S311  no secret depends on it
        return max(wait, min(error.retry_after or 0.0, policy.longest_retry_after))

    def _headers(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers for the host: the key, and nothing of the agent's but known betas."""
        headers = {"content-type": "application/json", "user-agent": "pytest-upskill"}
        if "anthropic-version" in given:
            headers["anthropic-version"] = given["anthropic-version"]
            betas = [each.strip() for each in given.get("anthropic-beta", "").split(",")]
            if known := [each for each in betas if each in _BETAS]:
                headers["anthropic-beta"] = ",".join(known)
        key = self._endpoint.key
        if key and key != NO_KEY:
            if self._endpoint.key_variable == "ANTHROPIC_API_KEY":
                headers["x-api-key"] = key
            else:
                headers["authorization"] = f"{self._endpoint.scheme} {key}"
        return headers


async def _error_body(response: httpx2.Response) -> object:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > _MOST_ERROR:
            break
    try:
        return json.loads(bytes(data))
    except ValueError:
        return data.decode("utf-8", "replace")
