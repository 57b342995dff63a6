"""The host of an agent's model, as the proxy reaches it.

Only this module adds the key to an agent's request.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import httpx2

from pytest_upskill.answers.progress import ASKING
from pytest_upskill.answers.retry import Retries
from pytest_upskill.models import Completion, ProviderError, Request
from pytest_upskill.models.anthropic import read_message
from pytest_upskill.models.call import CONNECT_S, NOT_SENT, Call
from pytest_upskill.models.gemini import read_generated
from pytest_upskill.models.keys import NO_KEY, Endpoint
from pytest_upskill.models.responses import read_response
from pytest_upskill.models.streams import AgentFormat, json_or_text, read_reply

_ALLOWED_BETAS = frozenset(
    {
        "claude-code-20250219",
        "fine-grained-tool-streaming-2025-05-14",
        "effort-2025-11-24",
        "interleaved-thinking-2025-05-14",
        "prompt-caching-scope-2026-01-05",
    }
)
"""Beta features of Anthropic's API that change neither the price nor what the host does."""


_READERS: Mapping[AgentFormat, Callable[[Mapping[str, Any]], Completion]] = {
    "messages": read_message,
    "responses": read_response,
    "generateContent": read_generated,
}

Script = Callable[[httpx2.Request], httpx2.Response]

Receive = Callable[[httpx2.Response], Awaitable[bytes]]
"""Reads a reply of status 200 while it arrives."""


@dataclass(eq=False)
class Upstream:
    """The host; a request that it may bill is not sent again, because it is settled once."""

    endpoint: Endpoint
    """The host and its key."""
    wire: AgentFormat
    """The format of the requests."""
    _: KW_ONLY
    timeout: float
    """Seconds until the reply must begin, and between its parts."""
    retries: Retries
    """Sends requests to the host."""
    script: Script | None = None
    """Replies in place of the host; None for the host."""

    def __post_init__(self) -> None:
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(self.timeout, connect=min(self.timeout, CONNECT_S), pool=None),
            limits=httpx2.Limits(max_connections=None),
            # Prompts and keys must only reach the named host, not the target of a redirect.
            follow_redirects=False,
            trust_env=bool(self.endpoint.client),
            transport=None if self.script is None else httpx2.MockTransport(self.script),
        )

    async def exchange(
        self,
        request: Request,
        route: str,
        content: bytes,
        agent_headers: Mapping[str, str],
        receive: Receive,
    ) -> Completion:
        """Send a request, pass its reply to a receiver, and return the completion in it.

        Args:
            request: The request of the run.
            route: The part of the URL after the base URL.
            content: The body, as JSON.
            agent_headers: The headers of the agent's request.
            receive: Reads the first reply of status 200.

        Raises:
            ProviderError: There is no usable reply, or it broke off.
        """
        url = f"{_base_url(self.endpoint.url, self.wire)}/{route}"
        headers = self._headers(agent_headers)
        built = self._http.build_request("POST", url, content=content, headers=headers)
        call = Call(model=request.model, endpoint=self.endpoint)
        return await self.retries.send(request, partial(self._exchange_once, call, built, receive))

    def _completion(self, call: Call, reply: bytes) -> Completion:
        """Return the completion in a reply.

        Raises:
            ProviderError: The reply is an error, or malformed.
        """
        try:
            body = self.endpoint.redactor.redact_json(read_reply(reply, self.wire))
            return call.completion({"model": body.get("modelVersion"), **body}, _READERS[self.wire])
        except ProviderError as error:
            # The agent has the beginning of the reply.
            error.retryable = False
            raise

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _exchange_once(
        self, call: Call, built: httpx2.Request, receive: Receive
    ) -> Completion:
        """Send a request once.

        Raises:
            ProviderError: There is no usable reply; it may be sent again if it cannot be billed.
        """
        try:
            with self.retries.activity.doing(ASKING):
                response = await self._http.send(built, stream=True)
            async with aclosing(response):
                if response.status_code == HTTPStatus.OK:
                    return self._completion(call, await receive(response))
                data = await response.aread()
                error_body = json_or_text(data.decode("utf-8", "replace"))
        except NOT_SENT as error:
            raise call.connection_error(error) from None
        except httpx2.HTTPError as error:
            reason = self.endpoint.redactor.redact(str(error) or type(error).__name__)
            problem = f"no complete reply from {self.endpoint.host} ({reason})"
            raise ProviderError(f"{call.model.label}: {problem}") from None
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            defect = f"{call.model.label}: malformed reply ({type(error).__name__})"
            raise ProviderError(defect, status=HTTPStatus.OK) from None
        # A host may send the key back.
        redacted = self.endpoint.redactor.redact_json(error_body)
        raise call.http_error(response.status_code, redacted, call.headers(response))

    def _headers(self, agent_headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers for the host: the key, and the agent's version and allowed betas."""
        headers = {"content-type": "application/json", "user-agent": "pytest-upskill"}
        if "anthropic-version" in agent_headers:
            headers["anthropic-version"] = agent_headers["anthropic-version"]
            betas = [beta.strip() for beta in agent_headers.get("anthropic-beta", "").split(",")]
            if allowed := [beta for beta in betas if beta in _ALLOWED_BETAS]:
                headers["anthropic-beta"] = ",".join(allowed)
        key = self.endpoint.key
        if key and key != NO_KEY:
            if self.endpoint.key_variable == "ANTHROPIC_API_KEY":
                headers["x-api-key"] = key
            elif self.wire == "generateContent":
                headers["x-goog-api-key"] = key
            else:
                headers["authorization"] = f"{self.endpoint.scheme} {key}"
        return headers | dict(self.endpoint.headers)


def _base_url(url: str, wire: AgentFormat) -> str:
    """Return the URL to which routes are added; the user's may end in a version or not."""
    if wire == "generateContent":
        # The vendor's own is that of its chat completions.
        return f"{url.removesuffix('/openai').removesuffix('/v1beta')}/v1beta"
    return f"{url.removesuffix('/v1')}/v1" if wire == "messages" else url
