"""Agents that are programs: what they may do, what is read of it, and how a run ends."""

from __future__ import annotations

import os

import pytest

from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Received
from tests.programs import KEY, Step, bash, follow, results, skill
from tests.programs import claude as claude  # noqa: PLC0414  a fixture

pytestmark = pytest.mark.needs("bwrap")

CASE = {
    "id": "sum",
    "input": "Sum up in.txt into sum.txt.",
    "workspace": {"in.txt": "3\n4\n"},
    "expected": {"file_contains": {"sum.txt": "7"}, "triggered": True},
}


def with_skill_only(received: Received) -> Step:
    """Use the skill where it is offered, and leave the sum only then."""
    if "billing" not in results(received):
        return "I do not know how."
    asked = results(received).count("tool_result")
    return [skill(), bash("echo 7 > sum.txt"), "The sum is in sum.txt."][asked]


def test_an_agent_is_measured_like_any_model_and_replayed_without_program_and_key(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    claude: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_skill(CASE)
    follow(loopback, with_skill_only)

    result = run_once("skills", f"--upskill-models={claude}")

    assert "0->100%" in result.stdout.str()
    assert {received.headers["authorization"] for received in loopback.requests} == {
        f"Bearer {KEY}"
    }

    asked = len(loopback.requests)
    monkeypatch.setenv("PATH", os.environ["PATH"].partition(os.pathsep)[2])
    monkeypatch.delenv("UPSKILL_API_KEY")
    again = run_once("skills", f"--upskill-models={claude}", "--upskill-cache=replay")

    assert (result.ret, again.ret) == (0, 0)
    assert len(loopback.requests) == asked
    assert "0->100%" in again.stdout.str()
