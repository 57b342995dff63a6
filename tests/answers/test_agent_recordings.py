"""Recordings of an agent's runs: which are refused, and which are by another version."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.answers.recordings import Cache
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import AgentRun, AgentTask, Completion, parse_model
from tests.sdk_requests import request_to

REQUEST = replace(request_to(parse_model("loop:haiku")), task=AgentTask(skill_name="sums"))


def _outside(run: dict[str, Any]) -> None:
    run["changed"] = [{"name": "../../escaped.txt", "text": "x", "binary": False}]


def _deleting(run: dict[str, Any]) -> None:
    run["deleted"] = ["/etc/passwd"]


def _huge(run: dict[str, Any]) -> None:
    run["changed"] = [{"name": "a", "text": "x" * 2_000_000, "binary": False}]


def _undecodable(run: dict[str, Any]) -> None:
    run["changed"] = [{"name": "a", "text": "x", "binary": True}]


def _many(run: dict[str, Any]) -> None:
    run["changed"] = [{"name": f"f{n}", "text": "", "binary": False} for n in range(2001)]


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (_outside, "has the name of a file outside the workspace"),
        (_deleting, "has the name of a file outside the workspace"),
        (_huge, "has more than 1 MiB of files"),
        (_undecodable, "has a file that cannot be decoded"),
        (_many, "has more than 2,000 files"),
        (lambda run: run.update(changed="x"), "not a recording"),
    ],
)
def test_a_record_that_no_run_can_have_left_is_refused(
    tmp_path: Path, forge: Callable[[dict[str, Any]], None], said: str
) -> None:
    run = AgentRun(version="1", changed=(WorkspaceFile(name="total.txt", text="TOTAL 350\n"),))
    completion = Completion(text="Done.", input_tokens=1, output_tokens=1, agent_run=run)
    cache = Cache(tmp_path, "auto")
    cache.store(REQUEST, "u", completion, "a")
    assert cache.load(REQUEST, "u") == replace(completion, replayed=True)
    (file,) = tmp_path.glob("agent-runs/*/*.json")
    record = json.loads(file.read_text("utf-8"))
    forge(record["completion"]["agent_run"])
    file.write_text(json.dumps(record), "utf-8")

    assert cache.load(REQUEST, "u") is None

    assert list(cache.problems) == [f"{file}: ignored: {said}"]


def test_a_replayed_run_of_another_version_than_the_installed_one_is_noted(tmp_path: Path) -> None:
    made = Completion(text="", input_tokens=1, output_tokens=1, agent_run=AgentRun(version="1"))
    cache = Cache(tmp_path, "auto")
    cache.store(REQUEST, "u", made, "a")
    cache.installed_agents["loop"] = "2"

    cache.load(REQUEST, "u")

    (line,) = cache.replacement_lines
    assert line.startswith("loop 2 is installed, and 1 of the replayed runs are by 1: ")
