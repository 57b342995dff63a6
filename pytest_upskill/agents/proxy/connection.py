"""HTTP on one connection of an agent. Parsing is h11's, which the SDKs bring along."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import h11

_MOST_BYTES = 1 << 25
"""Maximum size of a request."""

_CHUNK = 1 << 16
_GZIP = 31  # zlib's number for it


class Sent:
    """A request of the agent.

    Args:
        event: Its head.
        data: Its body, as it came.
    """

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


class Out:
    """The response to one request.

    Args:
        parser: The state of the connection.
        writer: Where it goes.
        body: Whether it may have a body.
    """

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


class Connection:
    """One connection of the agent.

    Args:
        reader: What the agent sends.
        writer: What it receives.
        respond: Responds to a request.
        turn: Held while a request is received and responded to: one at a time is in memory.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        respond: Callable[[Sent, Out], Awaitable[None]],
        turn: asyncio.Lock,
    ) -> None:
        self._turn = turn
        self._reader = reader
        self._writer = writer
        self._respond = respond
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_CHUNK)

    async def serve(self) -> None:
        """Respond to requests until the agent closes the connection.

        Raises:
            OSError, h11.ProtocolError: The agent has gone, or speaks no HTTP.
        """
        while isinstance(event := await self._next_event(), h11.Request):
            async with self._turn:
                body = await self._body()
                if body is None:
                    return
                out = Out(self._parser, self._writer, body=event.method != b"HEAD")
                await self._respond(Sent(event, body), out)
            if self._parser.our_state is not h11.DONE or self._parser.their_state is not h11.DONE:
                return
            self._parser.start_next_cycle()

    async def _body(self) -> bytes | None:
        """Read the body of a request; None if it is too large, or the connection ends."""
        data = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            data += event.data
            if len(data) > _MOST_BYTES:
                return None
        return bytes(data) if isinstance(event, h11.EndOfMessage) else None

    async def _next_event(self) -> object:
        """Read the next part of what the agent sends."""
        while (event := self._parser.next_event()) is h11.NEED_DATA:
            if self._parser.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                self._writer.write(self._parser.send(go_on) or b"")
            self._parser.receive_data(await self._reader.read(_CHUNK))
        return event
