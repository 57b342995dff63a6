"""Client for Anthropic's Messages API, based on the official SDK."""

from __future__ import annotations

from functools import partial

import anthropic
import httpx2

from pytest_upskill.models.call import Call
from pytest_upskill.models.completion import Completion
from pytest_upskill.models.connections import open_sdk
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.models.request import Request
from pytest_upskill.models.wire.messages import messages_body, read_message


class AnthropicClient:
    """A client for the models at one endpoint.

    Args:
        endpoint: Host and key.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        # The SDK adds /v1 itself.
        url = None if endpoint.uses_sdk_environment else endpoint.url.removesuffix("/v1")
        self._sdk = open_sdk(
            endpoint,
            sdk=partial(anthropic.AsyncAnthropic, base_url=url),
            http=anthropic.DefaultAsyncHttpxClient,
        )

    async def complete(self, request: Request) -> Completion:
        """Send a request once, without retries, and return the completion.

        Raises:
            ProviderError: There is no usable reply.
        """
        call = Call(request=request, endpoint=self._endpoint)
        # Not messages.create(): it warns of models that retire soon, which `-W error` would turn
        # into a failure, and warnings cannot be caught for a single task of an event loop.
        sent = self._sdk.post("/v1/messages", body=messages_body(request), cast_to=httpx2.Response)
        return await call.complete(sent, anthropic, read_message)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sdk.close()
