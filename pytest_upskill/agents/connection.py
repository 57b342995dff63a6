"""HTTP on one connection of an agent to the proxy.

It parses with h11, which is installed with the SDKs.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import h11

_MAX_BYTES = 1 << 24
"""Maximum size of a request's body, as sent and decompressed."""

_CHUNK = 1 << 16
_GZIP = 31
"""zlib's window size of the gzip format."""


class AgentRequest:
    """A request of the agent.

    Args:
        head: The request line and the headers.
        body: The body as received, perhaps compressed.
    """

    def __init__(self, head: h11.Request, body: bytes) -> None:
        self.method = head.method.decode()
        self.path = head.target.decode("ascii", "replace").partition("?")[0]
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers
        }
        self._body = body

    def decompressed_body(self) -> bytes:
        """Return the body, decompressed.

        Raises:
            ValueError: Its encoding is unknown, or it is too large.
            OSError, zlib.error: It is malformed.
        """
        match self.headers.get("content-encoding", "identity"):
            case "identity":
                return self._body
            case "gzip":
                body = zlib.decompressobj(_GZIP).decompress(self._body, _MAX_BYTES + 1)
                if len(body) <= _MAX_BYTES:
                    return body
        raise ValueError("unknown encoding, or too large")


class AgentResponse:
    """The response to one request of the agent.

    Args:
        parser: The state of the connection.
        writer: The connection.
        may_have_body: False for the response to a HEAD request.
    """

    def __init__(
        self, parser: h11.Connection, writer: asyncio.StreamWriter, *, may_have_body: bool
    ) -> None:
        self._parser = parser
        self._writer = writer
        self._may_have_body = may_have_body
        self._has_begun = False

    async def begin(self, status: int, content_type: str) -> None:
        """Send the head of a response whose body follows in chunks."""
        self._has_begun = True
        headers = [("content-type", content_type), ("transfer-encoding", "chunked")]
        await self._write(h11.Response(status_code=status, headers=headers))

    async def send(self, data: bytes) -> None:
        """Send a part of the body."""
        await self._write(h11.Data(data=data))

    async def end(self) -> None:
        """End the body."""
        await self._write(h11.EndOfMessage())

    async def error(self, status: int, message: str) -> None:
        """Send an error that clients of every wire format read, or cut off a begun response."""
        if self._has_begun:
            self._parser.send_failed()
            return
        self._has_begun = True
        error = {"type": "invalid_request_error", "message": f"pytest-upskill: {message}"}
        body = json.dumps({"type": "error", "error": error}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
        await self._write(h11.Response(status_code=status, headers=headers))
        if self._may_have_body:
            await self._write(h11.Data(data=body))
        await self._write(h11.EndOfMessage())

    async def _write(self, event: Any) -> None:
        self._writer.write(self._parser.send(event) or b"")
        await self._writer.drain()


class Connection:
    """One connection of the agent.

    Args:
        reader: Reads what the agent sends.
        writer: Writes to the agent.
        respond: Responds to a request.
        request_lock: Held while a request is received and answered, so that only one request of
            all connections is in memory.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        respond: Callable[[AgentRequest, AgentResponse], Awaitable[None]],
        request_lock: asyncio.Lock,
    ) -> None:
        self._request_lock = request_lock
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
            async with self._request_lock:
                body = await self._read_body()
                if body is None:
                    return
                may_have_body = event.method != b"HEAD"
                response = AgentResponse(self._parser, self._writer, may_have_body=may_have_body)
                await self._respond(AgentRequest(event, body), response)
            if self._parser.our_state is not h11.DONE or self._parser.their_state is not h11.DONE:
                return
            self._parser.start_next_cycle()

    async def _read_body(self) -> bytes | None:
        """Read the body of a request; return None if it is too large or the connection ends."""
        data = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            data += event.data
            if len(data) > _MAX_BYTES:
                return None
        return bytes(data) if isinstance(event, h11.EndOfMessage) else None

    async def _next_event(self) -> object:
        """Read the next part of a request, or the end of the connection."""
        while (event := self._parser.next_event()) is h11.NEED_DATA:
            if self._parser.they_are_waiting_for_100_continue:
                continue_ = h11.InformationalResponse(status_code=100, headers=[])
                self._writer.write(self._parser.send(continue_) or b"")
            self._parser.receive_data(await self._reader.read(_CHUNK))
        return event
