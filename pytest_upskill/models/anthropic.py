"""Anthropic's Messages API: client, bodies and replies.

Source: https://docs.claude.com/en/api/messages and https://docs.claude.com/en/docs/tool-use.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from pytest_upskill.models.call import SdkClient
from pytest_upskill.models.completion import Completion, clean
from pytest_upskill.models.content import clean_json, read_blocks, stop_reason, token_count
from pytest_upskill.models.errors import wants_stream
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.models.model import Model
from pytest_upskill.models.request import BatchStatus, ProviderError, Request, Turn


class AnthropicClient(SdkClient):
    """A client for the models at one endpoint.

    Args:
        endpoint: Host and key.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        import anthropic  # slow

        # The SDK adds /v1 itself, and finds the URL of its own hosts.
        url = None if endpoint.client else endpoint.url.removesuffix("/v1")
        if endpoint.url_is_set:
            url = endpoint.url
        client = getattr(anthropic, endpoint.client or "AsyncAnthropic")
        super().__init__(endpoint, anthropic, partial(client, base_url=url))
        self._streaming: set[str] = set()
        """Names of models that answer only in streams."""

    async def complete(self, request: Request) -> Completion:
        """Send a request once, and return the completion; again if it must be streamed.

        Raises:
            ProviderError: There is no usable reply.
        """
        streams = request.model.name in self._streaming
        try:
            return await self._send(request, streams=streams)
        except ProviderError as error:
            if streams or not wants_stream(error):
                raise
        self._streaming.add(request.model.name)
        return await self._send(request, streams=True)

    async def _send(self, request: Request, *, streams: bool) -> Completion:
        body = messages_body(request) | ({"stream": True} if streams else {})
        call = self._call(request.model, offers_tools=bool(request.tools))
        return await call.complete(self._post("/v1/messages", body), "messages", read_message)

    # Batches: https://docs.claude.com/en/api/creating-message-batches

    async def submit(self, requests: Mapping[str, Request], model: Model) -> str:
        """Send requests to one model as a batch, and return its id."""
        bodies = [
            {"custom_id": name, "params": messages_body(request)}
            for name, request in requests.items()
        ]
        batch = await self._call(model).fetch(self._post(_BATCHES, {"requests": bodies}))
        return str(batch["id"])

    async def status(self, batch: str, model: Model) -> BatchStatus:
        """Return how far a batch is."""
        body = await self._call(model).fetch(self._get(f"{_BATCHES}/{batch}"))
        counts = dict(body.get("request_counts") or {})
        waiting = counts.pop("processing", 0)
        ended = body["processing_status"] == "ended"
        return BatchStatus(ended, sum(counts.values()) if ended or waiting else 0)

    async def results(
        self, batch: str, names: Iterable[str], model: Model
    ) -> Mapping[str, Completion | ProviderError]:
        """Return what became of the requests of a batch that has ended."""
        sent = self._get(f"{_BATCHES}/{batch}/results")
        lines = await self._call(model).fetch(sent, is_file=True)
        found = {line["custom_id"]: self._result(model, line["result"]) for line in lines}
        return {name: found[name] for name in names if name in found}

    async def cancel(self, batch: str, model: Model) -> None:
        """Cancel a batch."""
        await self._call(model).fetch(self._post(f"{_BATCHES}/{batch}/cancel"))

    def _result(self, model: Model, result: Mapping[str, Any]) -> Completion | ProviderError:
        call, kind = self._call(model), result["type"]
        if kind == "errored":
            # Other errors than that of a request are the host's own.
            is_invalid = "invalid_request_error" in str(result["error"])
            return call.http_error(400 if is_invalid else 500, result["error"], {})
        if kind != "succeeded":
            return call.not_processed(kind)
        return call.outcome(result["message"], read_message)


_BATCHES = "/v1/messages/batches"

_CACHE_BREAKPOINT: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
"""Marks the end of a prefix that the next requests will share, for the prompt cache."""


def messages_body(request: Request) -> dict[str, Any]:
    """Return the JSON body of a request.

    Anthropic's own API refuses temperature and top_p; other servers with this format take them.
    None takes a seed.
    """
    messages: list[dict[str, Any]] = [{"role": "user", "content": clean(request.user)}]
    for turn in request.turns:
        messages += _turn_messages(turn)
    if request.turns and request.turns[-1].results:
        messages[-1]["content"][-1] |= _CACHE_BREAKPOINT
    system: list[dict[str, Any]] = []
    if request.frame:
        system.append({"type": "text", "text": clean(request.frame)})
    if request.skill:
        # A separate block, so that the one before it is the same in every arm. The skill is the
        # last part that all cases share, so it gets the cache breakpoint.
        system.append({"type": "text", "text": clean(request.skill), **_CACHE_BREAKPOINT})
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
        for tool in request.tools
    ]
    parameters = request.model.parameters
    return parameters.body_with(
        {
            "model": request.model.name,
            "max_tokens": request.max_tokens,
            "messages": messages,
            "system": system or None,
            "temperature": parameters.temperature,
            "top_p": parameters.top_p,
            "stop_sequences": list(parameters.stop) or None,
            "output_config": {"effort": parameters.effort} if parameters.effort else None,
            "tools": tools or None,
        }
    )


def read_message(body: Mapping[str, Any]) -> Completion:
    """Return the completion in a reply, without what only HTTP headers contain.

    Raises:
        AttributeError, LookupError, TypeError: The reply is malformed.
    """
    content = read_blocks(body["content"])
    usage = body.get("usage")
    cache_read = token_count(usage, "cache_read_input_tokens") or 0
    cache_write = token_count(usage, "cache_creation_input_tokens") or 0
    uncached = token_count(usage, "input_tokens")
    return Completion(
        text=clean(content.text),
        reasoning=clean(content.reasoning),
        tool_calls=content.tool_calls,
        assistant_blocks=tuple(clean_json(body["content"])),
        input_tokens=None if uncached is None else uncached + cache_read + cache_write,
        output_tokens=token_count(usage, "output_tokens"),
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        stop_reason=stop_reason(body.get("stop_reason")),
    )


def _turn_messages(turn: Turn) -> list[dict[str, Any]]:
    results = [
        {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": clean(result.text),
            **({"is_error": True} if result.failed else {}),
        }
        for result in turn.results
    ]
    message = {"role": "assistant", "content": [dict(block) for block in turn.assistant_blocks]}
    return [message, {"role": "user", "content": results}]
