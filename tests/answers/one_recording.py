"""A request, its answer, and the recording of both."""

from __future__ import annotations

from pathlib import Path

from pytest_upskill.answers.recordings import Cache
from pytest_upskill.models import Completion, Request, parse_model

URL = "https://api.anthropic.com"
REQUEST = Request(
    model=parse_model("haiku"),
    frame="Be brief.",
    skill="\n\nThe budget is 37.",
    user="What is\nthe budget?",
    max_tokens=64,
    run=0,
)
ANSWER = Completion(
    text="37\n\u00fcber\tall\u2028\r\n",
    input_tokens=100,
    output_tokens=5,
    cache_read_tokens=80,
    cache_write_tokens=10,
    stop_reason="max_tokens",
    served_model="claude-haiku-5-5",
    request_id="req_1",
    latency_s=1.25,
    attempts=2,
    cost_usd=0.001,
)


def recorded(folder: Path) -> Cache:
    cache = Cache(folder, "auto")
    cache.store(REQUEST, URL, ANSWER, "billing::budget[haiku-with_skill] run 1")
    return cache


def only_file(folder: Path) -> Path:
    (file,) = folder.glob("*/*.json")
    return file
