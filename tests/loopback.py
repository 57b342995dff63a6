"""A server on 127.0.0.1 that speaks both wire formats, as a fixture and by URL."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, cast
from urllib.parse import parse_qsl

import httpx2
import pytest

_STOP_ANTHROPIC = {"end": "end_turn"}
_STOP_OPENAI = {"end": "stop", "max_tokens": "length", "refusal": "content_filter"}
_USAGE_ANTHROPIC = {"input_tokens": 11, "output_tokens": 7}
_USAGE_OPENAI = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request, as it came over the wire."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, Any]
    raw: bytes = b""
    """The body as it came."""

    @property
    def system(self) -> str:
        if "system" in self.body:
            return "".join(block["text"] for block in self.body["system"])
        return "".join(m["content"] for m in self.body["messages"] if m["role"] == "system")

    @property
    def user(self) -> str:
        return str(self.body["messages"][-1]["content"])


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One reply, put into the wire format that was asked for unless ``body`` says what to send."""

    text: str = "ok"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the first byte."""
    drop: bool = False
    """Whether to close the connection instead of replying."""
    stop: str = "end"
    """``end``, ``max_tokens`` or ``refusal`` in either format, anything else verbatim."""
    usage: Mapping[str, Any] | Literal["some"] | None = "some"
    """In the words of the wire format asked for; None sends no usage."""
    content: Sequence[Mapping[str, Any]] | None = None
    """Content blocks of an Anthropic reply, instead of one with ``text``."""
    message: Mapping[str, Any] = field(default_factory=dict)
    """What to change in the message of a chat completion."""
    body: str | bytes | Mapping[str, Any] | None = None
    """Sent as it is; a mapping as JSON."""
    content_type: str = "application/json"
    model: str | None = None
    """Who says to have answered; whoever was asked if None."""
    chunked: bool = False
    """Whether the body comes in chunks of a few bytes."""


Answer = Callable[[Received], Reply | str]


class Loopback:
    """A running server: what it replies, and what it received.

    Attributes:
        replies: Sent first, one per request.
        answer: Makes every reply after those.
        requests: Everything received, in order of arrival.
        models: The reply to a request for the list of models; None for a server without one.
        model_list_requests: How often that list was requested.
        peak: The most requests that were open at one time.
        connections: How many were ever opened.
    """

    def __init__(self) -> None:
        self.replies: deque[Reply | str] = deque()
        self.answer: Answer = lambda _: Reply()
        self.requests: list[Received] = []
        self.models: Mapping[str, Any] | None = None
        self.model_list_requests = 0
        self.peak = 0
        self.connections = 0
        self._scheme = "http"
        self._open = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.loopback = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The server's origin, which is the base URL of the Anthropic format."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    def use_tls(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on; a handshake must not keep the server from accepting others."""
        self._scheme = "https"
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )

    @contextmanager
    def respond(self, received: Received) -> Iterator[Reply]:
        """Record a request and choose its reply; it is open until the context ends."""
        with self._lock:
            self.requests.append(received)
            self._open += 1
            self.peak = max(self.peak, self._open)
            reply = self.replies.popleft() if self.replies else None
        try:
            reply = self.answer(received) if reply is None else reply
            yield Reply(text=reply) if isinstance(reply, str) else reply
        finally:
            with self._lock:
                self._open -= 1

    def wait(self, seconds: float) -> None:
        """Wait, unless the server is closed."""
        self._closing.wait(seconds)

    async def answer_here(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request in the process and thread that would send it."""
        raw = request.content
        received = Received(
            path=request.url.path,
            headers=dict(request.headers),
            body=json.loads(raw),
            raw=raw,
        )
        with self.respond(received) as reply:
            await asyncio.sleep(reply.delay)
        if reply.drop:
            raise httpx2.RemoteProtocolError("Server disconnected without sending a response.")
        return httpx2.Response(
            reply.status, headers=_headers(reply), content=_body(received, reply), request=request
        )

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    server = Loopback()
    yield server
    server.close()


@pytest.fixture
def without_sockets(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    """Send what this process asks the server by no socket, which takes half of the time.

    For tests that are about something else; processes that they start use sockets.
    """
    send = httpx2.AsyncHTTPTransport.handle_async_request

    async def answer(
        transport: httpx2.AsyncHTTPTransport, request: httpx2.Request
    ) -> httpx2.Response:
        if (request.method, request.url.port) == ("POST", loopback.port):
            return await loopback.answer_here(request)
        return await send(transport, request)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", answer)
    return loopback


def know(received: Received) -> Reply:
    """Answer with the fact of ``write_skill`` where the request holds it."""
    return Reply(text="37" if "37" in received.system else "No idea.")


@pytest.fixture
def model(without_sockets: Loopback) -> str:
    """Serve a model that knows what is in its context; return how it is chosen."""
    loopback = without_sockets
    asked = Counter[tuple[str, str]]()

    def answer(received: Received) -> Reply:
        # Runs with one text would count as one.
        asked[received.system, received.user] += 1
        run = asked[received.system, received.user]
        reply = know(received)
        return replace(reply, text=f"{reply.text} ({run})") if run > 1 else reply

    loopback.answer = answer
    return f"m=openai:small@{loopback.openai_url}"


class _Server(ThreadingHTTPServer):
    loopback: Loopback
    daemon_threads = True
    block_on_close = False
    # The default of 5 resets connections that come all at once.
    request_queue_size = 128

    def process_request(self, request: Any, client_address: Any) -> None:
        self.loopback.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of a mistake in this server, not of a client that hangs up."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        loopback = cast("_Server", self.server).loopback
        loopback.model_list_requests += 1
        status = 200 if loopback.models is not None and self.path == "/v1/models" else 404
        self._send(Reply(status=status), json.dumps(loopback.models).encode())

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        raw = self.rfile.read(length)
        if len(raw) < length:
            # Two tracebacks at once, this server's and pytest's, break each other on Python 3.11.
            raise ConnectionAbortedError("The client hung up within its request.")
        is_form = "urlencoded" in (self.headers["content-type"] or "")
        received = Received(
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=dict(parse_qsl(raw.decode())) if is_form else json.loads(raw),
            raw=raw,
        )
        loopback = cast("_Server", self.server).loopback
        with loopback.respond(received) as reply:
            loopback.wait(reply.delay)
        if reply.drop:
            self.close_connection = True
            return
        body = _body(received, reply)
        try:
            self._send(reply, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _send(self, reply: Reply, body: bytes) -> None:
        self.send_response(reply.status)
        size = str(len(body))
        length = {"transfer-encoding": "chunked"} if reply.chunked else {"content-length": size}
        for name, value in (length | _headers(reply)).items():
            self.send_header(name, value)
        self.end_headers()
        if reply.chunked:
            chunks = [body[at : at + 5] for at in range(0, len(body), 5)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in [*chunks, b""])
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as in the base class
        pass


def _headers(reply: Reply) -> dict[str, str]:
    names = {"content-type": reply.content_type, "request-id": "req_1", "x-request-id": "req_1"}
    return {**names, **reply.headers}


def _body(received: Received, reply: Reply) -> bytes:
    if isinstance(reply.body, bytes):
        return reply.body
    if isinstance(reply.body, str):
        return reply.body.encode()
    body: object = {"error": {"message": f"no such path: {received.path}"}}
    if reply.body is not None:
        body = reply.body
    elif received.path.endswith("/messages"):
        body = _anthropic(received, reply)
    elif received.path.endswith("/chat/completions"):
        body = _openai(received, reply)
    return json.dumps(body).encode()


def _anthropic(received: Received, reply: Reply) -> dict[str, Any]:
    if reply.status != 200:
        error = {"type": "api_error", "message": reply.text}
        return {"type": "error", "error": error}
    text = [{"type": "text", "text": reply.text}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": reply.model or received.body["model"],
        "content": text if reply.content is None else reply.content,
        "stop_reason": _STOP_ANTHROPIC.get(reply.stop, reply.stop),
        "stop_sequence": None,
        "usage": _USAGE_ANTHROPIC if reply.usage == "some" else reply.usage,
    }


def _openai(received: Received, reply: Reply) -> dict[str, Any]:
    if reply.status != 200:
        return {"error": {"message": reply.text, "type": "api_error", "code": None}}
    message = {"role": "assistant", "content": reply.text, "refusal": None, **reply.message}
    finish_reason = _STOP_OPENAI.get(reply.stop, reply.stop)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": reply.model or received.body["model"],
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
        "usage": _USAGE_OPENAI if reply.usage == "some" else reply.usage,
    }
