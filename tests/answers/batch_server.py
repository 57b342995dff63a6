"""A server with the batches of Anthropic and OpenAI, which checks what it is sent and bills it.

It follows https://docs.claude.com/en/api/creating-message-batches and
https://platform.openai.com/docs/guides/batch; what it sends is checked against the SDKs' types.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import BatchCreateParams
from openai.types import Batch, FileObject
from openai.types.batch_create_params import BatchCreateParams as OpenAIBatchCreateParams
from pydantic import TypeAdapter

Fate = Literal["succeeded", "errored", "expired"]

TOKENS_IN, TOKENS_OUT = 100, 50
CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TIME = "2026-11-23T10:00:00Z"
_ANTHROPIC = TypeAdapter(BatchCreateParams)
_OPENAI = TypeAdapter(OpenAIBatchCreateParams)


@dataclass(kw_only=True)
class SentBatch:
    """A batch that was submitted."""

    kind: str
    bodies: Mapping[str, Mapping[str, Any]]
    polls: int = 0
    canceled: bool = False
    fates: dict[str, str] = field(default_factory=dict)


class BatchServer(ThreadingHTTPServer):
    """The server.

    Attributes:
        batches: The batches, by id.
        direct: Number of single requests.
        polls_needed: How often a batch is asked for until it has ended.
        fate: What becomes of a request of a batch.
        fail: Status to answer a request with instead, by method and path; None for none.
        why: The message of such a reply.
        answer: The text of an answer, by the body of its request.
        billed: Dollars, at one for a million tokens in and two for a million out.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.batches: dict[str, SentBatch] = {}
        self.files: dict[str, bytes] = {}
        self.direct = 0
        self.polls_needed = 1
        self.fate: Callable[[Mapping[str, Any]], Fate] = lambda _: "succeeded"
        self.fail: Callable[[str, str], int | None] = lambda *_: None
        self.why = "as told"
        self.answer: Callable[[Mapping[str, Any]], str] = lambda _: "37"
        self.billed = 0.0
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def bill(self, share: float) -> None:
        with self.lock:
            self.billed += share * (TOKENS_IN + 2 * TOKENS_OUT) / 1e6

    def handle(  # noqa: PLR0911  one for each path
        self, method: str, path: str, raw: bytes
    ) -> tuple[int, object]:
        """Return the status and the body of a reply; bytes are sent as they are."""
        if (status := self.fail(method, path)) is not None:
            return status, {"error": {"message": self.why, "type": "api_error"}}
        parts = path.removeprefix("/v1/").split("/")
        with self.lock:
            match method, parts:
                case "POST", ["messages"] | ["chat", "completions"]:
                    self.direct += 1
                case "POST", ["messages", "batches"]:
                    return 200, self._create_anthropic(json.loads(raw))
                case _, ["messages", "batches", name, *rest]:
                    return 200, self._anthropic(name, rest)
                case "POST", ["files"]:
                    return 200, self._upload(raw)
                case "GET", ["files", name, "content"]:
                    return 200, self.files[name]
                case "POST", ["batches"]:
                    return 200, self._create_openai(json.loads(raw))
                case _, ["batches", name, *rest]:
                    return 200, self._openai(name, rest)
                case _:
                    return 404, {"error": {"message": "no such path"}}
        self.bill(1.0)
        return 200, self.message(parts[0], json.loads(raw))

    def message(self, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
        text = self.answer(body)
        if kind == "messages":
            return {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT},
            }
        return {
            "model": body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": text}}],
            "usage": {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT},
        }

    def _start(self, kind: str, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        assert bodies
        assert all(CUSTOM_ID.fullmatch(name) for name in bodies)
        name = f"{kind}_{len(self.batches) + 1}"
        self.batches[name] = SentBatch(kind=kind, bodies=bodies)
        return name

    def _has_ended(self, name: str, *, poll: bool) -> bool:
        """Count a poll; when the batch ends, decide the fate of its requests, and bill them."""
        batch = self.batches[name]
        batch.polls += poll
        if batch.polls >= self.polls_needed and not batch.fates:
            for each, body in batch.bodies.items():
                batch.fates[each] = "canceled" if batch.canceled else self.fate(body)
                if batch.fates[each] == "succeeded":
                    self.billed += 0.5 * (TOKENS_IN + 2 * TOKENS_OUT) / 1e6
        return bool(batch.fates)

    def _create_anthropic(self, body: Any) -> object:
        _ANTHROPIC.validate_python(body)
        bodies = {each["custom_id"]: each["params"] for each in body["requests"]}
        assert len(bodies) == len(body["requests"])
        return self._anthropic(self._start("msgbatch", bodies), ["new"])

    def _anthropic(self, name: str, rest: list[str]) -> object:
        batch = self.batches[name]
        if rest == ["results"]:
            assert batch.fates
            names = list(batch.fates)
            random.Random(1).shuffle(names)
            return "".join(f"{json.dumps(self._result(batch, each))}\n" for each in names).encode()
        batch.canceled |= rest == ["cancel"]
        ended = self._has_ended(name, poll=not rest)
        fates = list(batch.fates.values())
        counts = {
            kind: fates.count(kind) for kind in ("succeeded", "errored", "canceled", "expired")
        }
        reply = {
            "id": name,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {"processing": 0 if ended else len(batch.bodies), **counts},
            "created_at": _TIME,
            "expires_at": _TIME,
            "ended_at": _TIME if ended else None,
            "results_url": f"{self.url}/v1/messages/batches/{name}/results" if ended else None,
        }
        MessageBatch.model_validate(reply, strict=False)
        return reply

    def _result(self, batch: SentBatch, name: str) -> object:
        result: dict[str, Any] = {"type": batch.fates[name]}
        if batch.fates[name] == "succeeded":
            result["message"] = self.message("messages", batch.bodies[name])
        elif batch.fates[name] == "errored":
            error = {"type": "invalid_request_error", "message": "prompt is too odd"}
            result["error"] = {"type": "error", "error": error, "request_id": None}
        line = {"custom_id": name, "result": result}
        MessageBatchIndividualResponse.model_validate(line)
        return line

    def _upload(self, raw: bytes) -> object:
        assert b'name="purpose"\r\n\r\nbatch' in raw
        assert b'filename="batch.jsonl"' in raw
        name = f"file_{len(self.files)}"
        self.files[name] = b"".join(
            line + b"\n" for line in raw.splitlines() if line.startswith(b'{"custom_id"')
        )
        reply = {
            "id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "batch.jsonl",
            "purpose": "batch", "status": "processed",
        }  # fmt: skip
        FileObject.model_validate(reply)
        return reply

    def _create_openai(self, body: Any) -> object:
        _OPENAI.validate_python(body)
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        assert {(each["method"], each["url"]) for each in lines} == {("POST", body["endpoint"])}
        assert len({each["body"]["model"] for each in lines}) == 1
        bodies = {each["custom_id"]: each["body"] for each in lines}
        return self._openai(self._start("batch", bodies), ["new"])

    def _openai(self, name: str, rest: list[str]) -> object:
        batch = self.batches[name]
        batch.canceled |= rest == ["cancel"]
        ended = self._has_ended(name, poll=not rest)
        for file, kinds in (("output", ["succeeded"]), ("error", ["errored", "expired"])):
            lines = [
                f"{json.dumps(self._line(batch, each))}\n"
                for each, fate in batch.fates.items()
                if fate in kinds
            ]
            if lines:
                self.files[f"{name}_{file}"] = "".join(lines).encode()
        status = "cancelled" if batch.canceled else "completed"
        reply = {
            "id": name,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": "file_0",
            "completion_window": "24h",
            "status": status if ended else "in_progress",
            "created_at": 1,
            "output_file_id": f"{name}_output" if f"{name}_output" in self.files else None,
            "error_file_id": f"{name}_error" if f"{name}_error" in self.files else None,
            "request_counts": {"total": len(batch.bodies), "completed": 0, "failed": 0},
        }
        Batch.model_validate(reply)
        return reply

    def _line(self, batch: SentBatch, name: str) -> object:
        response: Any = None
        error: Any = None
        match batch.fates[name]:
            case "succeeded":
                body = self.message("chat", batch.bodies[name])
                response = {"status_code": 200, "request_id": "r", "body": body}
            case "errored":
                body = {"error": {"message": "prompt is too odd"}}
                response = {"status_code": 400, "request_id": "r", "body": body}
            case _:
                error = {"code": "batch_expired", "message": "not in time"}
        return {"id": "x", "custom_id": name, "response": response, "error": error}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BatchServer

    def do_GET(self) -> None:
        self._reply("GET", b"")

    def do_POST(self) -> None:
        self._reply("POST", self.rfile.read(int(self.headers["content-length"] or 0)))

    def _reply(self, method: str, raw: bytes) -> None:
        status, body = self.server.handle(method, self.path, raw)
        if status == 0:
            self.close_connection = True
            return
        lines = isinstance(body, bytes)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/x-jsonl" if lines else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as in the base class
        pass


def serve() -> Iterator[BatchServer]:
    """Run a server, for a fixture."""
    server = BatchServer()
    yield server
    server.shutdown()
    server.server_close()
