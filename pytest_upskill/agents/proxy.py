"""The HTTP server between an agent in the sandbox and the host of its model.

It listens on a unix socket, which is the sandbox's only way out, and parses with h11, which is
installed with the SDKs.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import h11
import httpx2

from pytest_upskill.agents import request_filter
from pytest_upskill.agents.exchanges import Exchanges, sent_to_model
from pytest_upskill.agents.programs import Cli
from pytest_upskill.agents.upstream import Upstream
from pytest_upskill.answers.budget import BudgetError, Settle
from pytest_upskill.models import ProviderError, Request, RunLimits
from pytest_upskill.models.streams import MAX_REPLY

_FINISH_S = 10.0
"""Seconds to wait for a reply that is still arriving when the agent exits."""
_SEND_S = 30.0
"""Seconds after which an agent that reads no more of a reply counts as gone."""
_MAX_CONNECTIONS = 64
"""Maximum of open connections; each takes a file descriptor of this process."""
_MAX_BYTES = 1 << 24
"""Maximum size of a request's body."""
_MAX_BRACKETS = 1_000_000
"""Maximum number of lists and objects in it: nothing else runs while JSON is read."""

_MAX_NAME_CHARS = 40
_CHUNK = 1 << 16

_GENERATING = ("generateContent", "streamGenerateContent")
"""What Gemini's program asks of a model, as the end of the URL."""


@dataclass(eq=False)
class Proxy:
    """Forwards the requests of one run, within its limits, and notes them.

    Attributes:
        exchanges: The exchanges so far.
        ended: Done when the run has ended: the limit that ended it, "" for none, or an error of
            the host or the budget.
    """

    request: Request
    """The request of the run."""
    cli: Cli
    """The adapter of the agent."""
    upstream: Upstream
    """Replies to the requests."""
    reserve: Callable[[int], Awaitable[Settle]]
    """Reserves the price of a request with at most so many tokens; raises BudgetError."""
    limits: RunLimits

    def __post_init__(self) -> None:
        assert self.request.task is not None
        self.exchanges = Exchanges(
            task=self.request.task,
            skill_tool=self.cli.skill_tool,
            redact=self.upstream.endpoint.redactor.redact,
            limits=self.limits,
        )
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        # One request at a time: a limit must be reached by the same request in every run.
        self._request_lock = asyncio.Lock()
        self._waited_s = 0.0
        self._waiting_since: float | None = None

    def end(self, limit: str = "") -> None:
        """End the run at a limit or at the choice of a skill: the first reason counts."""
        if not self.ended.done():
            self.ended.set_result(limit)

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting for the host so far."""
        since = self._waiting_since
        return self._waited_s + (0.0 if since is None else time.monotonic() - since)

    async def start(self, path: Path) -> None:
        """Listen on a unix socket.

        Raises:
            OSError: The socket cannot be made.
        """
        self._server = await asyncio.start_unix_server(self._accept, path)

    async def finish(self) -> None:
        """Wait briefly for a reply that is still arriving, because it is paid for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FINISH_S), self._request_lock:
                pass

    async def aclose(self) -> None:
        """Close the socket and every connection, also those of requests in flight."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= _MAX_CONNECTIONS:
            writer.close()
            return
        self._connections.add(task)
        request = AgentRequest(reader, writer)
        try:
            if await request.read_head():
                # From here on, so that only one request of all connections is in memory.
                async with self._request_lock:
                    if await request.read_body():
                        await self._respond(request)
        except (OSError, h11.ProtocolError, asyncio.CancelledError):
            pass  # The agent has exited, or the run has ended.
        finally:
            self._connections.discard(task)
            with suppress(OSError):
                writer.close()

    async def _respond(self, agent: AgentRequest) -> None:
        """Check a request of the agent, and forward it unless the run ends before it."""
        route = self._route(agent.path)
        if agent.method != "POST" or not route:
            status = HTTPStatus.OK if agent.method == "HEAD" else HTTPStatus.NOT_FOUND
            # Some programs probe the host with HEAD, and read only the status.
            await agent.fail(status, "there is no such route here")
            return
        try:
            # In a thread, because a large request would stop the event loop.
            content, most, in_conversation = await asyncio.to_thread(self._prepare, agent.body)
            if self.exchanges.has_chosen:
                self.end()
            elif limit := self.exchanges.exceeded_limit():
                self.end(limit)
            if self.ended.done():
                await agent.fail(HTTPStatus.BAD_REQUEST, "the run has ended")
                return
            settle = await self.reserve(most)
        except request_filter.RefusedBody as error:
            await agent.fail(HTTPStatus.BAD_REQUEST, str(error))
        except BudgetError as error:
            await self._fail(error, agent)
        else:
            await self._forward(route, content, in_conversation, settle, agent)

    def _route(self, path: str) -> str:
        """Return the part of the host's URL for a path of the agent's; "" if it is not allowed."""
        if self.upstream.wire != "generateContent":
            return self.upstream.wire if path.endswith(f"/{self.upstream.wire}") else ""
        verb = path.rpartition(":")[2]
        # The model is that of the run, whichever the agent names.
        route = f"models/{quote(self.request.model.name, safe='')}:{verb}"
        query = "?alt=sse" if verb.startswith("stream") else ""
        return route + query if verb in _GENERATING else ""

    async def _forward(
        self, route: str, content: bytes, in_conversation: bool, settle: Settle, agent: AgentRequest
    ) -> None:
        """Send what is allowed of a request to the host, and note and settle the exchange."""
        self.exchanges.requests += 1
        completion, billable = None, True
        self._waiting_since = time.monotonic()
        try:
            completion = await self.upstream.exchange(
                self.request, route, content, agent.headers, partial(self._receive, agent)
            )
            await agent.send(h11.EndOfMessage())
        except Exception as error:  # noqa: BLE001  the host's, or a mistake of ours
            billable = not isinstance(error, ProviderError) or error.billable
            await self._fail(error, agent)
        finally:
            self._waited_s += time.monotonic() - self._waiting_since
            self._waiting_since = None
            cost = await asyncio.shield(settle(completion, billable))
            if completion is not None:
                priced = replace(completion, cost_usd=cost)
                self.exchanges.note_reply(priced, len(content), in_conversation=in_conversation)
                if self.exchanges.taken:
                    self.end()

    def _prepare(self, content: bytes) -> tuple[bytes, int, bool]:
        """Return what is allowed of a request, and note what it says.

        Returns:
            The body for the host, the most tokens that its prompt can have, and whether it is part
            of the conversation, and no side question.

        Raises:
            RefusedBody: It is no JSON, or a part of it is not allowed.
        """
        agent_body = _json_object(content)
        wire, name, most = self.upstream.wire, self.request.model.name, self.request.max_tokens
        body = request_filter.filter_request(wire, agent_body, model=name, max_tokens=most)
        names = request_filter.left_out_of(wire, agent_body, body)
        self.exchanges.left_out.update(name[:_MAX_NAME_CHARS] for name in names)
        # Agents offer tools, except in a side question, such as one for a title.
        in_conversation = bool(body.get("tools"))
        content = json.dumps(body).encode("ascii")
        if in_conversation:
            self.exchanges.note_request([*sent_to_model(body)])
        return content, request_filter.max_prompt_tokens(wire, content), in_conversation

    async def _receive(self, agent: AgentRequest, reply: httpx2.Response) -> bytes:
        """Read a reply, and pass it to the agent while it arrives.

        Raises:
            ValueError: It is larger than `MAX_REPLY`.
        """
        await agent.begin(HTTPStatus.OK, reply.headers.get("content-type", "application/json"))
        data = bytearray()
        # Read to its end even if the agent has gone: it is paid for.
        async for chunk in reply.aiter_bytes():
            data += chunk
            if len(data) > MAX_REPLY:
                raise ValueError(f"the reply is larger than {MAX_REPLY >> 20} MiB")
            await agent.send(h11.Data(data=chunk))
        return bytes(data)

    async def _fail(self, error: Exception, agent: AgentRequest) -> None:
        """End the run with an error, and tell the agent."""
        if not self.ended.done():
            self.ended.set_exception(error)
            # A run that is cancelled never asks for it.
            self.ended.exception()
        await agent.fail(HTTPStatus.BAD_REQUEST, str(error))


def _json_object(content: bytes) -> dict[str, Any]:
    """Return the body of a request.

    Raises:
        RefusedBody: It is no JSON object, or a huge one.
    """
    if content.count(b"[") + content.count(b"{") > _MAX_BRACKETS:
        raise request_filter.RefusedBody(f"more than {_MAX_BRACKETS:,} lists and objects")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise request_filter.RefusedBody(f"no JSON: {type(error).__name__}") from None
    if not isinstance(body, dict):
        raise request_filter.RefusedBody("no JSON object")
    return body


class AgentRequest:
    """A request of the agent, on a connection of its own, and the response to it.

    Attributes:
        method: Its method; "" before it has been read.
        path: Its path, without a query.
        headers: Its headers, with names in lower case.
        body: Its body as received; one that is compressed is refused as no JSON.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.method = self.path = ""
        self.headers: Mapping[str, str] = {}
        self.body = b""
        self._reader = reader
        self._writer = writer
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_CHUNK)
        self._has_response = self._has_gone = False

    async def read_head(self) -> bool:
        """Read its first part; return False if the agent sends none.

        Raises:
            OSError, h11.ProtocolError: The agent has gone, or speaks no HTTP.
        """
        head = await self._next_event()
        if not isinstance(head, h11.Request):
            return False
        self.method = head.method.decode()
        self.path = head.target.decode("ascii", "replace").partition("?")[0]
        self.headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in head.headers
        }
        return True

    async def read_body(self) -> bool:
        """Read the rest; return False if it is too large, or the connection ends."""
        data = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            data += event.data
            if len(data) > _MAX_BYTES:
                return False
        self.body = bytes(data)
        return isinstance(event, h11.EndOfMessage)

    async def begin(self, status: int, content_type: str) -> None:
        """Send the head of the response, whose body follows in chunks."""
        self._has_response = True
        headers = [("content-type", content_type), ("connection", "close")]
        await self.send(h11.Response(status_code=status, headers=headers))

    async def fail(self, status: int, message: str) -> None:
        """Respond with an error that clients of every format read, or cut off a begun response."""
        if self._has_response:
            self._parser.send_failed()
            return
        error = {"type": "invalid_request_error", "message": f"pytest-upskill: {message}"}
        await self.begin(status, "application/json")
        if self.method != "HEAD":
            await self.send(h11.Data(data=json.dumps({"type": "error", "error": error}).encode()))
        await self.send(h11.EndOfMessage())

    async def send(self, event: Any) -> None:
        """Send a part of the response, unless the agent has gone or reads no more."""
        if self._has_gone:
            return
        try:
            async with asyncio.timeout(_SEND_S):
                self._writer.write(self._parser.send(event) or b"")
                await self._writer.drain()
        except (OSError, h11.ProtocolError):  # a TimeoutError is an OSError
            self._has_gone = True

    async def _next_event(self) -> object:
        """Read the next part of the request, or the end of the connection."""
        while (event := self._parser.next_event()) is h11.NEED_DATA:
            self._parser.receive_data(await self._reader.read(_CHUNK))
        return event
