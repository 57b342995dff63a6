"""Compare the plan with the bill: ten suites on a server whose answers have realistic lengths.

    python benchmarks/known_beforehand.py

For each suite a line: what the plan calls likely and the maximum, what the server billed, and their
ratio; and the same for a second plan, which knows the recordings of half the runs.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BYTES_PER_TOKEN = 4.2
PRICE_IN, PRICE_OUT = 1.0, 5.0
"""Dollars per million tokens."""

SUITES = {
    # What the answers are: the median of their tokens, and the sigma of its logarithm.
    "code": (750, 0.5),
    "short facts": (320, 0.6),
    "explanations": (600, 0.5),
    "JSON": (380, 0.4),
    "reasoning": (1100, 0.6),
}


class _Server(ThreadingHTTPServer):
    median, sigma = 500.0, 0.5
    billed = 0.0
    lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        body = json.loads(raw)
        texts = "".join(message["content"] for message in body["messages"])
        chance = random.Random(raw + str(self.server.billed).encode())
        tokens = int(self.server.median * chance.lognormvariate(0, self.server.sigma))
        tokens = min(tokens, body.get("max_tokens") or body["max_completion_tokens"])
        prompt = int(len(texts.encode()) / BYTES_PER_TOKEN) + 12
        with self.server.lock:
            self.server.billed += (prompt * PRICE_IN + tokens * PRICE_OUT) / 1e6
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens}
        message = {"role": "assistant", "content": f"{tokens} " + "word " * tokens}
        self._send({"model": "m", "choices": [{"message": message}], "usage": usage})

    def do_GET(self) -> None:
        self._send({"data": []})

    def _send(self, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as in the base class
        pass


def write_suite(folder: Path, cases: int, skill_bytes: int) -> None:
    """Write a skill with cases whose questions have a few hundred bytes."""
    skill = folder / "skills" / "csv"
    skill.mkdir(parents=True)
    text = "Read each table with its own delimiter, and keep the quotes. "
    skill.joinpath("SKILL.md").write_text(
        "---\nname: csv\ndescription: Reads tables.\n---\n" + text * (skill_bytes // len(text)),
        "utf-8",
    )
    entries = [
        {"id": f"case-{n}", "input": f"Question {n}: " + "how is this read? " * 20, "expected": {}}
        for n in range(cases)
    ]
    for entry in entries:
        entry["expected"] = {"contains": "word"}
    skill.joinpath("skill_meta.json").write_text(json.dumps({"cases": entries}), "utf-8")


def run(folder: Path, port: int, name: str, *options: str) -> str:
    """Run pytest on a suite, and return what it prints."""
    model = f"m=openai:{name}@http://127.0.0.1:{port}/v1"
    (folder / "pytest.ini").write_text(
        f"[pytest]\nupskill_prices = m = {PRICE_IN}/{PRICE_OUT}\n", "utf-8"
    )
    command = [sys.executable, "-m", "pytest", "--upskill-models", model, "skills", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout


def plan(output: str) -> tuple[float, float]:
    """Return the maximum and the likely dollars of a plan."""
    most, likely = re.findall(r"out, \$([\d.,]+), likely \$([\d.,]+)", output)[0]
    return float(most.replace(",", "")), float(likely.replace(",", "").rstrip("."))


def measure(server: _Server) -> Iterator[bool]:
    """Run the suites, and yield whether each bill was as planned."""
    for name, (server.median, server.sigma) in SUITES.items():
        model = "gpt-6" if name == "reasoning" else "small"
        for cases, skill_bytes in ((4, 2_000), (8, 12_000)):
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                write_suite(root, cases, skill_bytes)
                for runs in ("3", "6"):
                    server.billed = 0.0
                    output = run(root, server.server_port, model, f"--upskill-runs={runs}")
                    most, likely = plan(output)
                    ratio = server.billed / likely
                    good = 0.5 <= ratio <= 2 and server.billed <= most
                    kind = "first" if runs == "3" else "more runs"
                    print(
                        f"{name}, {cases} cases, {skill_bytes} bytes, {kind}: at most ${most:.4f}, "
                        f"likely ${likely:.4f}, billed ${server.billed:.4f}, ratio {ratio:.2f}"
                        f"{'' if good else '  NOT AS PLANNED'}"
                    )
                    yield good


def main() -> None:
    """Print the lines, and how many bills were as planned."""
    server = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    results = list(measure(server))
    print(f"{sum(results)} of {len(results)} as planned")
    server.shutdown()


if __name__ == "__main__":
    main()
