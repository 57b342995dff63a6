"""A loopback server that speaks chat completions and messages, for measuring.

    python benchmarks/server.py --port 0

It answers with the text of the user's message when the system prompt holds a skill, and that it
does not know otherwise. With tools in a chat, it takes the skill that the user names. `POST
/reset` takes a `Behavior` as JSON and zeroes the counters, `GET /stats` gives them. `GET /models`
names none. Everything else is a request for a completion.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import time
from dataclasses import dataclass, field
from typing import Any

REFUSAL_S = 0.01
"""Refusals come fast."""

_SKILL = re.compile(r"the skill ([\w-]+)")
"""The skill that a user asks for; it is taken if there are tools."""


@dataclass(frozen=True, kw_only=True)
class Behavior:
    """How the server behaves; seconds and shares of the requests."""

    latency: float = 0.0
    """The median, where ``sigma`` is not 0."""
    sigma: float = 0.0
    """Of a lognormal distribution."""
    too_many: float = 0.0
    """Share answered with 429 and ``Retry-After: 1``."""
    broken: float = 0.0
    """Share answered with 500."""
    seed: int = 1


@dataclass(kw_only=True)
class Counters:
    """What happened since the last reset."""

    requests: int = 0
    refused: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    connections: int = 0
    first: float = 0.0
    """When the first request came; seconds since the epoch."""
    last: float = 0.0
    """When the last answer went."""
    latencies: list[float] = field(default_factory=list)
    """Of the answers, in the order of their requests."""
    answered: dict[str, int] = field(default_factory=dict)
    """Answers by the digest of the request."""

    def summary(self) -> dict[str, Any]:
        """Sum up; ``duplicates`` counts answers to what had been answered before."""
        duplicates = sum(self.answered.values()) - len(self.answered)
        return vars(self) | {"answered": len(self.answered), "duplicates": duplicates}


class Server:
    """Draws what happens to each request, in the order in which they come."""

    def __init__(self) -> None:
        self.reset(Behavior())

    def reset(self, behavior: Behavior) -> None:
        """Begin anew."""
        self.behavior = behavior
        self.counters = Counters()
        self._random = random.Random(behavior.seed)

    def arrive(self) -> tuple[int, float]:
        """Note a request; draw its status and the seconds until then."""
        counters, behavior = self.counters, self.behavior
        now = time.time()
        counters.first = counters.first or now
        counters.requests += 1
        counters.in_flight += 1
        counters.most_in_flight = max(counters.most_in_flight, counters.in_flight)
        draw = self._random.random()
        if draw < behavior.too_many:
            return 429, REFUSAL_S
        if draw < behavior.too_many + behavior.broken:
            return 500, REFUSAL_S
        wait = behavior.latency * self._random.lognormvariate(0, behavior.sigma)
        counters.latencies.append(wait)
        return 200, wait

    def leave(self, status: int, body: bytes) -> None:
        """Note the answer to a request."""
        self.counters.in_flight -= 1
        self.counters.last = time.time()
        if status == 200:
            digest = hashlib.sha256(body).hexdigest()[:16]
            self.counters.answered[digest] = self.counters.answered.get(digest, 0) + 1
        else:
            self.counters.refused += 1


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive and content lengths, a request at a time: what both SDKs send."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._received = bytearray()
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.counters.connections += 1

    def data_received(self, data: bytes) -> None:
        """Answer once the whole request is there."""
        self._received += data
        head, blank, rest = bytes(self._received).partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:])
        length = int(fields.get("content-length", "0"))
        if not blank or len(rest) < length:
            return
        self._received.clear()
        self._route(lines[0].split(" ")[1], rest)

    def _route(self, path: str, body: bytes) -> None:
        if path == "/stats":
            self._send(200, self._server.counters.summary())
        elif path == "/reset":
            self._server.reset(Behavior(**json.loads(body)))
            self._send(200, {})
        elif path.endswith("/models"):
            self._send(404, {"error": {"message": "no list of models"}})
        else:
            status, wait = self._server.arrive()
            self._loop.call_later(wait, self._answer, status, path, body)

    def _answer(self, status: int, path: str, body: bytes) -> None:
        self._server.leave(status, body)
        if status != 200:
            self._send(status, {"error": {"message": f"status {status}"}}, "retry-after: 1\r\n")
        elif path.endswith("/messages"):
            self._send(200, messages_reply(json.loads(body)))
        else:
            self._send(200, chat_reply(json.loads(body)))

    def _send(self, status: int, value: object, headers: str = "") -> None:
        content = json.dumps(value).encode()
        head = f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(content)}\r\n{headers if status == 429 else ''}\r\n"
        self._transport.write(head.encode() + content)


def chat_reply(body: dict[str, Any]) -> dict[str, object]:
    """Answer a request for a chat completion."""
    *system, user = body["messages"]
    text = answer(json.dumps(system), user["content"])
    message: dict[str, object] = {"role": "assistant", "content": text}
    if "tools" in body and (named := _SKILL.search(user["content"])):
        function = {"name": "skill", "arguments": json.dumps({"name": named[1]})}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": message,
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def messages_reply(body: dict[str, Any]) -> dict[str, object]:
    """Answer a request for a message."""
    content = body["messages"][-1]["content"]
    user = content if isinstance(content, str) else content[-1]["text"]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": answer(json.dumps(body.get("system")), user)}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }


def answer(system: str, user: str) -> str:
    """Repeat the user's words, if there is a skill."""
    return user if "<skill" in system else "I do not know."


async def serve(port: int) -> None:
    """Serve until killed; print the port."""
    server = Server()
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(
        lambda: Connection(server), "127.0.0.1", port, backlog=1024
    )
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=8099, help="0 for a free one (8099)")
    asyncio.run(serve(parser.parse_args().port))
