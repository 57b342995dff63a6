"""OpenAI's Chat Completions API and compatible servers: client, bodies and replies.

Source: https://platform.openai.com/docs/api-reference/chat.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar, Literal

from pytest_upskill.models import content
from pytest_upskill.models.call import Read, SdkClient
from pytest_upskill.models.completion import Completion, clean
from pytest_upskill.models.errors import wants_stream
from pytest_upskill.models.hosts import BY_PREFIX
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.models.model import Model
from pytest_upskill.models.request import BatchStatus, ProviderError, Request
from pytest_upskill.models.responses import as_function, read_response, responses_body

_REFUSALS = frozenset({400, 404, 405, 406, 422, 500, 501})
_OPENAIS = re.compile(r"gpt-(?!oss)|\bo\d|-pro\b|codex|deep-research|computer-use")
"""Names of OpenAI's models, of which some have no chat."""
_REFUSED_WITHIN_S = 1.0
"""Seconds in which a host refuses the first request of a model that has no chat."""
_AZURE_API_VERSION = "2024-10-21"
_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"


class OpenAIClient(SdkClient):
    """A client for the models at one endpoint.

    Args:
        endpoint: Host and key.
    """

    options: ClassVar[Mapping[str, Any]] = {"security": {"bearer_auth": True}}
    """Keeps the SDK from falling back to the organization's admin key."""

    def __init__(self, endpoint: Endpoint) -> None:
        import openai  # slow

        is_azure = endpoint.client == "AsyncAzureOpenAI"
        general = partial(openai.AsyncOpenAI, base_url=endpoint.url)
        super().__init__(endpoint, openai, _azure(openai, endpoint) if is_azure else general)
        self._dialects: dict[Model, Dialect] = {}
        self._first_ended: dict[Model, asyncio.Event] = {}
        """For each model, an event that is set once its first request has ended."""

    async def complete(self, request: Request) -> Completion:
        """Send a request once, and return the completion.

        If the host asks for another dialect, it is sent again, and later requests use that dialect.

        Raises:
            ProviderError: There is no usable reply.
        """
        first_ended = self._first_ended.get(request.model)
        if first_ended is None:
            first_ended = self._first_ended[request.model] = asyncio.Event()
            try:
                return await self._complete(request)
            finally:
                first_ended.set()
        if not first_ended.is_set() and _may_lack_chat(request.model):
            # If it is refused for that, no other is sent in vain; that takes no answer's time.
            with suppress(TimeoutError):
                await asyncio.wait_for(first_ended.wait(), _REFUSED_WITHIN_S)
        return await self._complete(request)

    async def _complete(self, request: Request) -> Completion:
        dialect = self._dialect(request.model)
        while True:
            try:
                return await self._send(request, dialect)
            except ProviderError as error:
                adapted = dialect.adapted_to(error) if error.status in _REFUSALS else dialect
                if adapted == dialect:
                    raise
                self._dialects[request.model] = dialect = adapted

    def _dialect(self, model: Model) -> Dialect:
        return self._dialects.get(model) or Dialect.of(model)

    async def _send(self, request: Request, dialect: Dialect) -> Completion:
        body = dialect.body(request)
        if dialect.streams:
            body |= {"stream": True}
            body |= {"stream_options": {"include_usage": True}} if dialect.wire == "chat" else {}
        call = self._call(request.model, offers_tools=bool(request.tools))
        return await call.complete(self._post(dialect.path, body), dialect.wire, dialect.read)

    # Batches: https://platform.openai.com/docs/guides/batch

    async def submit(self, requests: Mapping[str, Request], model: Model) -> str:
        """Send requests to one model as a batch, by way of a file, and return its id."""
        dialect, call = self._dialect(model), self._call(model)
        path = f"/v1{dialect.path}"
        lines = (
            {"custom_id": name, "method": "POST", "url": path, "body": dialect.body(request)}
            for name, request in requests.items()
        )
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        files = [("file", ("batch.jsonl", data))]
        options = {"headers": {"content-type": "multipart/form-data"}}
        sent = self._post("/files", {"purpose": "batch"}, files=files, options=options)
        try:
            file = await call.fetch(sent)
        except ProviderError as error:
            error.billable = False  # a file alone costs nothing
            raise
        body = {"input_file_id": file["id"], "endpoint": path, "completion_window": "24h"}
        return str((await call.fetch(self._post("/batches", body)))["id"])

    async def status(self, batch: str, model: Model) -> BatchStatus:
        """Return how far a batch is."""
        body = await self._call(model).fetch(self._get(f"/batches/{batch}"))
        counts = body.get("request_counts") or {}
        done = counts.get("completed", 0) + counts.get("failed", 0)
        return BatchStatus(body["status"] in _ENDED, done)

    async def results(
        self, batch: str, names: Iterable[str], model: Model
    ) -> Mapping[str, Completion | ProviderError]:
        """Return what became of the requests of a batch that has ended."""
        call = self._call(model)
        body = await call.fetch(self._get(f"/batches/{batch}"))
        found: dict[str, Completion | ProviderError] = {}
        for name in ("output_file_id", "error_file_id"):
            if file := body.get(name):
                lines = await call.fetch(self._get(f"/files/{file}/content"), is_file=True)
                found |= {line["custom_id"]: self._result(model, line) for line in lines}
        errors = content.get_field(body.get("errors"), "data")
        if not found and isinstance(errors, list) and errors:
            return dict.fromkeys(names, call.http_error(400, errors[0], {}))
        return found

    async def cancel(self, batch: str, model: Model) -> None:
        """Cancel a batch."""
        await self._call(model).fetch(self._post(f"/batches/{batch}/cancel"))

    def _result(self, model: Model, line: Mapping[str, Any]) -> Completion | ProviderError:
        call, response = self._call(model), line.get("response")
        if not isinstance(response, Mapping):
            return call.not_processed(str(content.get_field(line.get("error"), "code") or "failed"))
        dialect = self._dialect(model)
        if response["status_code"] == HTTPStatus.OK:
            return call.outcome(response["body"], dialect.read)
        error = call.http_error(response["status_code"], response["body"], {})
        if (adapted := dialect.adapted_to(error)) != dialect:
            self._dialects[model] = adapted
            error.retryable = True
        return error


def _may_lack_chat(model: Model) -> bool:
    """Return whether a model may be one of OpenAI's: those on a user's own network have chat."""
    return not model.is_on_own_network or _OPENAIS.search(model.name) is not None


_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


def _azure(openai: Any, endpoint: Endpoint) -> Callable[..., Any]:
    """Return what makes a client of Azure, with its key, or else signed in by azure-identity."""
    url = endpoint.url.removesuffix("/v1").removesuffix("/openai")
    version = os.environ.get("OPENAI_API_VERSION", _AZURE_API_VERSION)
    client = partial(openai.AsyncAzureOpenAI, azure_endpoint=url, api_version=version)
    if any(os.environ.get(name) for name in BY_PREFIX["azure"].keys):
        return client
    from azure.identity import DefaultAzureCredential, get_bearer_token_provider

    provider = get_bearer_token_provider(DefaultAzureCredential(), _AZURE_SCOPE)
    return partial(client, azure_ad_token_provider=partial(asyncio.to_thread, provider))


_ONLY_RESPONSES = re.compile(
    r"v1/responses|responses (api|endpoint)|chat.?completions? operation does not work"
    r"|not a chat model|not accessible via the /chat/completions",
    re.IGNORECASE,
)
_NO_SYSTEM = re.compile(
    r"system (role|message|prompt|instruction)s?\b.*\b(not|un)[ -]?(supported|allowed|enabled)"
    r"|(does not|doesn't|not) support.*\bsystem\b|only user and assistant roles"
    r"|developer instruction is not enabled",
    re.IGNORECASE,
)
_NO_MAX_TOKENS = re.compile(
    r"\A(?=.*max_completion_tokens)(?=.*(instead|unsupported|not (supported|compatible)))",
    re.IGNORECASE | re.DOTALL,
)
_MAX_CHARS = 4000
"""Number of characters of an error message that are searched."""

_REASONING_MODEL = re.compile(r"gpt-([5-9]|\d\d)(?!.*-chat)|o\d")
"""Names of OpenAI's models, on any host, that refuse ``max_tokens``."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The variant of the format that a model accepts."""

    limit_name: Literal["max_tokens", "max_completion_tokens"]
    """Name of the field with the maximum of output tokens.

    OpenAI's reasoning models refuse ``max_tokens``; local servers ignore the other name.
    """
    has_system_role: bool = True
    """Whether there is a system role; otherwise the system prompt is put before the question."""
    wire: Literal["chat", "responses"] = "chat"
    """The format: Responses for a model that has no chat."""
    streams: bool = False
    """Whether it answers only in streams."""

    @classmethod
    def of(cls, model: Model) -> Dialect:
        """Return the dialect to use before the first request to a model."""
        is_openai = model.vendor is not None and model.vendor.prefix == "openai"
        reasons = _REASONING_MODEL.match(model.name.rpartition("/")[2]) is not None
        return cls("max_completion_tokens" if is_openai or reasons else "max_tokens")

    @property
    def path(self) -> str:
        """The end of the URL of requests."""
        return "/chat/completions" if self.wire == "chat" else "/responses"

    @property
    def read(self) -> Read:
        """What reads the completion in a reply."""
        return read_chat if self.wire == "chat" else read_response

    def body(self, request: Request) -> dict[str, Any]:
        """Return the JSON body of a request."""
        return _chat_body(request, self) if self.wire == "chat" else responses_body(request)

    def adapted_to(self, refusal: ProviderError) -> Dialect:
        """Return the dialect that the error message of a host asks for, or this one.

        Azure, gateways and others say ``Use 'max_completion_tokens' instead`` of deployments whose
        names do not show which model they are. Some chat templates have no system role (Gemma's,
        older Mistral's). All arms use the same dialect.
        """
        error = str(refusal)[:_MAX_CHARS]
        if self.wire == "chat" and _ONLY_RESPONSES.search(error):
            return replace(self, wire="responses")
        if not self.streams and wants_stream(refusal):
            return replace(self, streams=True)
        if self.has_system_role and _NO_SYSTEM.search(error):
            return replace(self, has_system_role=False)
        if self.limit_name == "max_tokens" and _NO_MAX_TOKENS.search(error):
            return replace(self, limit_name="max_completion_tokens")
        return self


def _chat_body(request: Request, dialect: Dialect) -> dict[str, Any]:
    parameters, vendor = request.model.parameters, request.model.vendor
    system, user = clean(request.system), clean(request.user)
    if system and not dialect.has_system_role:
        system, user = "", "\n\n".join(filter(None, (system, user)))
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": user})
    for turn in request.turns:
        messages += ({"role": "assistant", **block} for block in turn.assistant_blocks)
        messages += (
            {"role": "tool", "tool_call_id": result.call_id, "content": clean(result.text)}
            for result in turn.results
        )
    tools = [{"type": "function", "function": as_function(tool)} for tool in request.tools]
    body: dict[str, Any] = {
        "model": request.model.name,
        "messages": messages,
        dialect.limit_name: request.max_tokens,
        "temperature": parameters.temperature,
        "top_p": parameters.top_p,
        vendor.seed if vendor else "seed": request.seed,
        "stop": list(parameters.stop) or None,
        "tools": tools or None,
    }
    if parameters.effort and vendor and vendor.nested_effort:
        body["reasoning"] = {"effort": parameters.effort}
    else:
        body["reasoning_effort"] = parameters.effort
    return parameters.body_with(body)


def read_chat(body: Mapping[str, Any]) -> Completion:
    """Return the completion in a reply, without what only HTTP headers contain.

    Raises:
        AttributeError, LookupError, TypeError: The reply is malformed.
    """
    choice, usage = body["choices"][0], body.get("usage")
    message = choice["message"]
    parts = content.read_chat_message(message)
    # Some servers send empty fields, but do not accept them.
    block = {k: v for k, v in message.items() if k == "content" or v not in (None, [])}
    details = content.get_field(usage, "prompt_tokens_details")
    reason = "refusal" if parts.refusal else choice.get("finish_reason")
    return Completion(
        text=clean(parts.text or parts.refusal),
        reasoning=clean(parts.reasoning),
        tool_calls=parts.tool_calls,
        assistant_blocks=(content.clean_json(block),),
        input_tokens=content.token_count(usage, "prompt_tokens"),
        output_tokens=_output_tokens(usage),
        cache_read_tokens=content.token_count(details, "cached_tokens") or 0,
        cache_write_tokens=content.token_count(details, "cache_write_tokens") or 0,
        stop_reason=content.stop_reason(reason),
    )


def _output_tokens(usage: object) -> int | None:
    """Return all generated tokens, None if the server does not count them.

    Gemini's endpoint and some gateways count reasoning in ``total_tokens`` alone. Totals that are
    smaller than the sum of their parts, such as 0, are ignored.
    """
    names = ("completion_tokens", "prompt_tokens", "total_tokens")
    output, prompt, total = (content.token_count(usage, name) for name in names)
    if output is None or prompt is None or total is None:
        return output
    return max(output, total - prompt)
