"""The HTTP server between an agent in the sandbox and the host of its model.

It listens on a unix socket, which is the sandbox's only way out. Parsing is h11's, which the SDKs
bring along.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import h11

from pytest_upskill.agents.allowed import RefusedBody, allowed
from pytest_upskill.agents.tally import Tally
from pytest_upskill.agents.upstream import Upstream
from pytest_upskill.completion import Completion, ProviderError, Request
from pytest_upskill.spending.budget import BudgetError
from pytest_upskill.spending.run_budget import Settle
from pytest_upskill.wire.chat import read_chat
from pytest_upskill.wire.messages import read_message
from pytest_upskill.wire.responses import read_response
from pytest_upskill.wire.stream import AgentFormat, ReplyReader

_MOST_BYTES = 1 << 25
"""Maximum size of a request."""

_CHUNK = 1 << 16
_FINISH_S = 10.0
_GZIP = 31  # zlib's number for it
_READERS: Mapping[AgentFormat, Callable[[Mapping[str, Any]], Completion]] = {
    "messages": read_message,
    "responses": read_response,
    "chat": read_chat,
}
_PATHS: Mapping[AgentFormat, str] = {
    "messages": "/messages",
    "responses": "/responses",
    "chat": "/chat/completions",
}


class Proxy:
    """Passes the requests of one run on, within its limits, and tallies them.

    Args:
        request: The request of the run.
        wire: The format that the agent speaks.
        upstream: Who replies.
        reserve: Reserves the price of a request with so many bytes; raises BudgetError.

    Attributes:
        tally: The sums so far.
        limit: The limit that ended the run; "" for none.
        error: The failure that ended the run; None for none.
        ended: Set when a limit or an error has ended the run.
    """

    def __init__(
        self,
        request: Request,
        wire: AgentFormat,
        upstream: Upstream,
        reserve: Callable[[int], Awaitable[Settle]],
    ) -> None:
        assert request.task is not None
        self.tally = Tally(task=request.task)
        self.limit = ""
        self.error: Exception | None = None
        self.ended = asyncio.Event()
        self._request = request
        self._wire = wire
        self._upstream = upstream
        self._reserve = reserve
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        # One request at a time: a limit must be reached by the same request in every run.
        self._turn = asyncio.Lock()
        self._waiting_since: float | None = None

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting for the host so far."""
        going_on = 0.0 if self._waiting_since is None else time.monotonic() - self._waiting_since
        return self.tally.waited_s + going_on

    async def start(self, path: Path) -> None:
        """Listen on a unix socket.

        Raises:
            OSError: The socket cannot be made.
        """
        self._server = await asyncio.start_unix_server(self._accept, path)

    async def finish(self) -> None:
        """Wait a little for a reply of which the agent did not wait for the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FINISH_S), self._turn:
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
        self._connections.add(task)
        try:
            await _Connection(reader, writer, self._respond).serve()
        except (OSError, h11.ProtocolError, asyncio.CancelledError):
            pass  # the agent, or the run, has ended
        finally:
            self._connections.discard(task)
            with suppress(OSError):
                writer.close()

    async def _respond(self, sent: _Sent, out: _Out) -> None:
        """Respond to a request of the agent."""
        if sent.method != "POST" or not sent.path.endswith(_PATHS[self._wire]):
            status = HTTPStatus.OK if sent.method == "HEAD" else HTTPStatus.NOT_FOUND
            await out.error(status, "there is no such route here")
            return
        try:
            body = json.loads(sent.content())
            if not isinstance(body, dict):
                raise TypeError("not an object")  # noqa: TRY301  as for invalid JSON
        except (ValueError, TypeError, zlib.error, OSError, RecursionError) as error:
            await out.error(HTTPStatus.BAD_REQUEST, f"no JSON: {type(error).__name__}")
            return
        async with self._turn:
            if not self.ended.is_set():
                self.limit = self.tally.limit()
            if self.limit or self.ended.is_set():
                self.ended.set()
                await out.error(HTTPStatus.BAD_REQUEST, self.limit or "the run has ended")
                return
            await self._forward(body, sent.headers, out)

    async def _forward(
        self, asked: Mapping[str, Any], headers: Mapping[str, str], out: _Out
    ) -> None:
        name, most = self._request.model.name, self._request.max_tokens
        try:
            passed = allowed(self._wire, asked, model=name, max_tokens=most)
            self.tally.dropped |= dict.fromkeys(passed.dropped)
            settle = await self._reserve(len(json.dumps(passed.body)))
        except RefusedBody as error:
            self.tally.dropped[str(error)] = None
            await out.error(HTTPStatus.BAD_REQUEST, str(error))
            return
        except BudgetError as error:
            await self._fail(error, out)
            return
        self.tally.asked(passed.body)
        completion, billable = None, True
        self._waiting_since = time.monotonic()
        try:
            completion = await self._exchange(passed.body, headers, out)
        except ProviderError as error:
            billable = error.billable
            await self._fail(error, out)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            label, what = self._request.model.label, type(error).__name__
            await self._fail(ProviderError(f"{label}: malformed reply ({what}: {error})"), out)
        finally:
            self.tally.waited_s += time.monotonic() - self._waiting_since
            self._waiting_since = None
            cost = await asyncio.shield(settle(completion, billable))
            if completion is not None:
                main = bool(passed.body.get("tools"))
                self.tally.answered(completion, main=main, cost_usd=cost)

    async def _exchange(
        self, body: Mapping[str, Any], headers: Mapping[str, str], out: _Out
    ) -> Completion:
        """Send a request to the host, and pass the reply on while it arrives."""
        reader = ReplyReader(self._wire)
        async with self._upstream.reply(self._request, body, headers) as reply:
            kind = reply.headers.get("content-type", "application/json")
            await _tell(out.begin(HTTPStatus.OK, kind))
            # Read to its end even if the agent has gone: it is paid for.
            async for chunk in reply.aiter_bytes():
                reader.feed(chunk)
                await _tell(out.send(chunk))
        whole = reader.body()
        if whole.get("error"):
            raise ProviderError(f"{self._request.model.label}: {_said(whole['error'])}", status=200)
        completion = _READERS[self._wire](whole)
        await _tell(out.end())
        return completion

    async def _fail(self, error: Exception, out: _Out) -> None:
        """End the run with an error."""
        self.error = self.error or error
        self.ended.set()
        await _tell(out.error(HTTPStatus.BAD_REQUEST, str(error)))


async def _tell(said: Awaitable[None]) -> None:
    """Send something to an agent that may have ended."""
    with suppress(OSError, h11.ProtocolError):
        await said


def _said(error: object) -> str:
    message = error.get("message") if isinstance(error, Mapping) else error
    return " ".join(str(message).split())[:200]


class _Sent:
    """A request of the agent."""

    def __init__(self, event: h11.Request, data: bytes) -> None:
        self.method = event.method.decode()
        self.path = event.target.decode("ascii", "replace").partition("?")[0]
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers
        }
        self._data = data

    def content(self) -> bytes:
        """Return the body, decompressed.

        Raises:
            ValueError: Its encoding is unknown, or it is too large.
            OSError, zlib.error: It is malformed.
        """
        match self.headers.get("content-encoding", "identity"):
            case "identity":
                return self._data
            case "gzip":
                whole = zlib.decompressobj(_GZIP).decompress(self._data, _MOST_BYTES + 1)
                if len(whole) <= _MOST_BYTES:
                    return whole
        raise ValueError("unknown encoding")


class _Connection:
    """One connection of the agent."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        respond: Callable[[_Sent, _Out], Awaitable[None]],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._respond = respond
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_CHUNK)

    async def serve(self) -> None:
        """Respond to requests until the agent closes the connection."""
        while (sent := await self._receive()) is not None:
            out = _Out(self._parser, self._writer, body=sent.method != "HEAD")
            await self._respond(sent, out)
            if self._parser.our_state is not h11.DONE or self._parser.their_state is not h11.DONE:
                return
            self._parser.start_next_cycle()

    async def _receive(self) -> _Sent | None:
        """Read the next request; None at the end of the connection."""
        request: h11.Request | None = None
        data = bytearray()
        while True:
            event = self._parser.next_event()
            if event is h11.NEED_DATA:
                if self._parser.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self._writer.write(self._parser.send(go_on) or b"")
                self._parser.receive_data(await self._reader.read(_CHUNK))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                data += event.data
                if len(data) > _MOST_BYTES:
                    return None
            elif isinstance(event, h11.EndOfMessage):
                assert request is not None
                return _Sent(request, bytes(data))
            else:
                return None


class _Out:
    """The response to one request."""

    def __init__(self, parser: h11.Connection, writer: asyncio.StreamWriter, *, body: bool) -> None:
        self._parser = parser
        self._writer = writer
        self._body = body
        self._begun = False

    async def begin(self, status: int, content_type: str) -> None:
        """Send the head of a response whose body follows in chunks."""
        self._begun = True
        headers = [("content-type", content_type), ("transfer-encoding", "chunked")]
        await self._write(h11.Response(status_code=status, headers=headers))

    async def send(self, data: bytes) -> None:
        """Send a part of the body."""
        await self._write(h11.Data(data=data))

    async def end(self) -> None:
        """End the body."""
        await self._write(h11.EndOfMessage())

    async def error(self, status: int, message: str) -> None:
        """Send an error in the words of every format; if a response has begun, cut it off."""
        if self._begun:
            self._parser.send_failed()
            return
        self._begun = True
        error = {"type": "invalid_request_error", "message": f"pytest-upskill: {message}"}
        body = json.dumps({"type": "error", "error": error}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
        await self._write(h11.Response(status_code=status, headers=headers))
        if self._body:
            await self._write(h11.Data(data=body))
        await self._write(h11.EndOfMessage())

    async def _write(self, event: Any) -> None:
        self._writer.write(self._parser.send(event) or b"")
        await self._writer.drain()
