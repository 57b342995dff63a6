"""Five kinds of slow servers, over HTTP: are answers lost, and how long do the requests take?

python benchmarks/slow_server.py              # scaled down to a timeout of 3 s: 4 min
python benchmarks/slow_server.py --full       # with the default timeout of 120 s: 80 min
python benchmarks/slow_server.py shared never # some of them
"""

from __future__ import annotations

import argparse
import json
import random
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ANSWERS = 60
CONCURRENCY = 20
"""The plugin's default."""
SLOTS = 2
TICK = 0.01
CASES = [
    {"id": f"n{n}", "input": f"How many of {n}?", "expected": {"contains": "37"}}
    for n in range(ANSWERS // 2)
]
UNANSWERED = b"How many of 7?"
"""The question that ``never`` does not answer without the skill."""


@dataclass(eq=False)
class Requests:
    """The requests that a server has, and which of them it works on."""

    kind: str
    seconds: float
    """Time of an answer; of ``shared``, of a request that has the server for itself."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[object] = field(default_factory=list)
    working: set[object] = field(default_factory=set)
    first: float = 0.0
    answered: list[float] = field(default_factory=list)
    cancelled: int = 0

    @property
    def ideal(self) -> float:
        """Seconds that all answers take if the server is never idle."""
        at_once = {"order": SLOTS, "random": SLOTS, "shared": 1}.get(self.kind, CONCURRENCY)
        return ANSWERS * self.seconds / at_once

    def work(self, body: bytes) -> Generator[None]:
        """Yield once per tick until the answer to a request is ready."""
        request = object()
        never = self.kind == "never" and UNANSWERED in body and b"It is 37." not in body
        with self.lock:
            self.first = self.first or time.monotonic()
            self.waiting.append(request)
        try:
            while not self._has_turn(request):
                yield
            left, before = self.seconds, time.monotonic()
            while left > 0 or never:
                yield
                now = time.monotonic()
                left -= (now - before) / (len(self.working) if self.kind == "shared" else 1)
                before = now
            self.answered.append(time.monotonic())
        finally:
            with self.lock:
                self.working.discard(request)
                if request in self.waiting:
                    self.waiting.remove(request)

    def _has_turn(self, request: object) -> bool:
        with self.lock:
            slots = SLOTS if self.kind in {"order", "random"} else ANSWERS
            if self.waiting and len(self.working) < slots:
                chosen = 0 if self.kind != "random" else random.randrange(len(self.waiting))
                self.working.add(self.waiting.pop(chosen))
            return request in self.working


class Server(ThreadingHTTPServer):
    """A server of one kind."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, requests: Requests) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = requests


class Handler(BaseHTTPRequestHandler):
    """Answers when the server has worked on the request, unless the client has left."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        """Serve no list of models."""
        self.send_error(404)

    def do_POST(self) -> None:
        """Work on a request, and answer."""
        body = self.rfile.read(int(self.headers["content-length"]))
        work = self.server.requests.work(body)
        for _ in work:
            if select.select([self.connection], [], [], 0)[0]:  # Closed: there is an end to read.
                self.close_connection = True
                self.server.requests.cancelled += 1
                work.close()
                return
            time.sleep(TICK)
        choice = {"message": {"role": "assistant", "content": "37"}, "finish_reason": "stop"}
        reply = json.dumps({"model": "slow", "choices": [choice]}).encode()
        with suppress(ConnectionError):  # The client may hang up at any time.
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as in the base class
        """Print nothing."""


def measure(requests: Requests, timeout: int) -> None:
    """Run pytest with default options against a server, and print what came of it."""
    server = Server(requests)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        skill = Path(folder, "slow")
        skill.mkdir()
        skill.joinpath("SKILL.md").write_text(
            "---\nname: slow\ndescription: A test.\n---\nIt is 37.\n"
        )
        skill.joinpath("skill_meta.json").write_text(json.dumps({"cases": CASES}))
        model = f"m=slow@http://127.0.0.1:{server.server_port}/v1"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder]
        command += ["--upskill-models", model, f"--upskill-timeout={timeout}"]
        started = time.monotonic()
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    whole = time.monotonic() - started
    if not requests.answered:
        sys.exit(run.stdout + run.stderr)
    took = max(requests.answered) - requests.first
    print(
        f"{requests.kind:10} {took:7.1f} s, {took / requests.ideal:.2f} x ideal, "
        f"answered {len(requests.answered)} of {ANSWERS}, cancelled {requests.cancelled}, "
        f"whole run {whole:.1f} s, exit code {run.returncode}",
        flush=True,
    )


def main() -> None:
    """Measure each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="in real time")
    parser.add_argument(
        "kinds", nargs="*", default=["order", "random", "shared", "parallel", "never"]
    )
    options = parser.parse_args()
    scale = 1 if options.full else 1 / 40
    for kind in options.kinds:
        seconds = 8 if kind == "shared" else 40
        measure(Requests(kind, seconds * scale), int(120 * scale))


if __name__ == "__main__":
    main()
