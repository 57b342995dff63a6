"""A loopback server that does one task with any agent, for measuring: load a skill, write a file.

    python benchmarks/agent_server.py --port 0 [--latency 0.5]

It speaks messages (Claude Code), responses (Codex) and chat completions (``loop``), and takes the
steps of the adapter's own rehearsal, one in each reply.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pytest_upskill.agents.programs import ClaudeCode, Codex
from pytest_upskill.agents.self_test import SKILL, streamed_reply

ANSWER = "Done."
_LOOP = (
    {"name": "skill", "input": {"name": SKILL}},
    {"name": "bash", "input": {"command": "printf done > done.txt"}},
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    """Buffered, so that a reply is one packet."""

    def __init__(self, latency: float, *given: Any) -> None:
        self._latency = latency
        super().__init__(*given)

    def do_GET(self) -> None:
        """Answer that nothing is known here."""
        self._send(b"{}", "application/json")

    def do_POST(self) -> None:
        """Send the next step."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(self._latency)
        if "/chat/" in self.path:
            self._send(json.dumps(_chat(body)).encode(), "application/json")
            return
        stream = _messages(body) if "/messages" in self.path else _responses(body)
        self._send(stream.encode(), "text/event-stream")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as in the base class
        """Print nothing."""

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _messages(body: Mapping[str, Any]) -> str:
    blocks = [
        block
        for turn in body["messages"]
        for block in (turn["content"] if isinstance(turn["content"], list) else ())
    ]
    done = sum(block["type"] == "tool_use" for block in blocks)
    call = _step(ClaudeCode().self_test_calls(SKILL), done, body)
    return streamed_reply("messages", body["model"], call, "" if call else ANSWER)


def _responses(body: Mapping[str, Any]) -> str:
    done = sum(item.get("type") == "function_call" for item in body["input"])
    call = _step(Codex().self_test_calls(SKILL), done, body)
    return streamed_reply("responses", body["model"], call, "" if call else ANSWER)


def _chat(body: Mapping[str, Any]) -> dict[str, Any]:
    done = sum(message["role"] == "assistant" for message in body["messages"])
    call = _step(_LOOP, done, body)
    message: dict[str, Any] = {"role": "assistant", "content": None if call else ANSWER}
    if call:
        function = {"name": call["name"], "arguments": json.dumps(call["input"])}
        message["tool_calls"] = [{"id": f"c{done}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }


def _step(
    steps: tuple[Mapping[str, Any], ...] | list[Mapping[str, Any]],
    done: int,
    body: Mapping[str, Any],
) -> Mapping[str, Any] | None:
    """Return the next call, None for an answer; a request without tools is a side question."""
    return steps[done] if body.get("tools") and done < len(steps) else None


def main() -> None:
    """Serve until killed; the first line of the output is the port."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds of each reply (0)")
    args = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", args.port), partial(_Handler, args.latency))
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
