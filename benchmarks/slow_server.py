"""A server with two slots and slow answers, over HTTP: are answers lost, is slot time wasted?

python benchmarks/slow_server.py           # 60 answers of 1 s with a timeout of 3 s: 1 min
python benchmarks/slow_server.py --full    # 60 answers of 40 s with a timeout of 120 s: 40 min
"""

from __future__ import annotations

import argparse
import json
import select
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SLOTS = 2
QUESTION = {"id": "n", "input": "How many?", "expected": {"contains": "37"}}


class Server(ThreadingHTTPServer):
    """A server that counts the slot time of answers, and of requests that were cancelled."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seconds = seconds
        self.slots = threading.Semaphore(SLOTS)
        self.busy = self.wasted = 0.0


class Handler(BaseHTTPRequestHandler):
    """Answers when a slot was free for as long as an answer takes."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        """Serve no list of models."""
        self.send_error(404)

    def do_POST(self) -> None:
        """Wait for a slot, and answer."""
        self.rfile.read(int(self.headers["content-length"]))
        while not self.server.slots.acquire(timeout=0.01):
            if self._gone():
                return
        started = time.monotonic()
        try:
            while (spent := time.monotonic() - started) < self.server.seconds:
                if self._gone():
                    self.server.wasted += spent
                    return
                time.sleep(0.005)
            self.server.busy += self.server.seconds
        finally:
            self.server.slots.release()
        choice = {"message": {"role": "assistant", "content": "37"}, "finish_reason": "stop"}
        body = json.dumps({"model": "slow", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _gone(self) -> bool:
        """Return whether the client closed the connection: then there is an end to read."""
        self.close_connection = bool(select.select([self.connection], [], [], 0)[0])
        return self.close_connection

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as in the base class
        """Print nothing."""


def measure(answers: int, seconds: float, *options: str) -> float:
    """Run pytest, print what came of it, and return how long the requests took."""
    server = Server(seconds)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        skill = Path(folder, "slow")
        skill.mkdir()
        skill.joinpath("SKILL.md").write_text(
            "---\nname: slow\ndescription: A test.\n---\nIt is 37.\n"
        )
        skill.joinpath("skill_meta.json").write_text(json.dumps({"cases": [QUESTION]}))
        model = f"m=slow@http://127.0.0.1:{server.server_port}/v1"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder]
        command += ["--upskill-models", model, f"--upskill-runs={answers // 2}", *options]
        started = time.monotonic()
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        took = time.monotonic() - started
    missing = answers - round(server.busy / seconds)
    share = server.wasted / (server.busy + server.wasted)
    print(
        f"{' '.join(options):55} {took:6.1f} s, lost {missing}, wasted {share:.1%}, "
        f"exit code {run.returncode}"
    )
    return took


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="in real time")
    full = parser.parse_args().full
    answers, seconds, timeout = (60, 40.0, 120) if full else (60, 1.0, 3)
    limit = f"--upskill-timeout={timeout}"
    default = measure(answers, seconds, limit)
    ideal = measure(answers, seconds, limit, f"--upskill-concurrency={SLOTS}")
    print(f"{default / ideal:.2f} times as long as with {SLOTS} requests in flight")
