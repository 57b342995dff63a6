"""Agents that are programs: what they may do, what is read of it, and how a run ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.agent_programs import (
    KEY,
    Step,
    bash,
    calls_so_far,
    follow,
    needs_bubblewrap,
    results,
    skill,
)
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Received, Reply

pytestmark = needs_bubblewrap

STREAM = "text/event-stream"

CASE = {
    "id": "sum",
    "input": "Sum up in.txt into sum.txt.",
    "workspace": {"in.txt": "3\n4\n"},
    "expected": {"file_contains": {"sum.txt": "7"}, "triggered": True},
}


@pytest.fixture(autouse=True)
def _case(write_skill: WriteSkill) -> None:
    write_skill(CASE)


def with_skill_only(received: Received) -> Step:
    """Use the skill where it is offered, and leave the sum only then."""
    if "billing" not in results(received):
        return "I do not know how."
    asked = results(received).count("tool_result")
    return [skill(), bash("echo 7 > sum.txt"), "The sum is in sum.txt."][asked]


def test_an_agent_is_measured_like_any_model_and_replayed_without_program_and_key(
    run_once: Run, loopback: Loopback, claude: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.parametrize("agent", ["loop", "claude-code"])
def test_setup_agent_and_checks_see_the_workspace_and_the_home_in_one_place(
    agent: str, run_once: Run, write_skill: WriteSkill, loopback: Loopback, claude: str
) -> None:
    places = 'echo "$PWD $HOME"'
    write_skill(
        {
            "id": "sum",
            "input": "Say where you are.",
            "setup": {"commands": [f"{places} > setup.txt"]},
            "expected": {"command": f"{places} | diff - setup.txt && diff setup.txt agent.txt"},
        }
    )
    follow(
        loopback, [("Bash" if agent != "loop" else "bash", {"command": f"{places} > agent.txt"})]
    )
    model = claude.replace("claude-code:", f"{agent}:anthropic:")

    run_once("skills", f"--upskill-models=a={model}", "-rA").assert_outcomes(passed=3)

    (file, *_) = Path(".upskill").rglob("agent-runs/*/*.json")
    assert "/workspace /home/agent" in file.read_text("utf-8")


def test_a_run_whose_skill_was_broken_is_missing_data_and_not_recorded(
    run_once: Run, loopback: Loopback, claude: str
) -> None:
    def step(received: Received) -> Step:
        steps = [bash("rm -r ~/.claude/skills"), skill(), "Done."]
        return steps[calls_so_far(received)] if "billing" in results(received) else "No."

    follow(loopback, step)
    run_once("skills", f"--upskill-models=a={claude}").assert_outcomes(
        errors=1, passed=1, skipped=1
    )
    asked = len(loopback.requests)
    follow(loopback, with_skill_only)

    again = run_once("skills", f"--upskill-models=a={claude}")

    again.assert_outcomes(passed=3)
    assert (asked, len(loopback.requests)) == (4, 7)


def test_the_plan_names_the_limit_of_cost(
    run_once: Run, pytester: pytest.Pytester, claude: str
) -> None:
    pytester.makeini("[pytest]\nupskill_prices = a = 1/1")

    result = run_once("skills", f"--upskill-models=a={claude}", "--upskill-dry-run")

    result.stdout.fnmatch_lines(
        [
            "upskill: with agents, the run stops at $5.00 unless --upskill-max-cost sets *",
        ],
        consecutive=False,
    )


def test_a_missing_program_is_one_line_before_anything_is_sent(
    run_once: Run, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, **_: f"/usr/bin/{name}" * (name == "bwrap"))

    result = run_once("skills", f"--upskill-models=claude-code:haiku@{loopback.url}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert loopback.requests == []
    said = (
        "claude-code needs the program 'claude' on PATH: npm install -g @anthropic-ai/claude-code"
    )
    result.stderr.fnmatch_lines([f"*{said}*"])


@pytest.mark.parametrize("level", ["off", "limits", "landlock"])
def test_a_program_is_refused_in_any_weaker_sandbox(
    level: str, run_once: Run, loopback: Loopback, claude: str
) -> None:
    result = run_once("skills", f"--upskill-models={claude}", f"--upskill-sandbox={level}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert loopback.requests == []
    assert len([line for line in result.stderr.lines if level in line]) == 1


def test_a_host_that_sends_the_key_back_leaves_it_in_no_record_and_no_report(
    run_once: Run, loopback: Loopback, claude: str, pytester: pytest.Pytester
) -> None:
    half = len(KEY) // 2
    joined = f"printf %s {KEY[:half]} > sum.txt; printf %s {KEY[half:]} >> sum.txt"
    follow(loopback, [bash(f"echo {KEY} > in.txt"), bash(joined), f"You sent {KEY}"])

    result = run_once(
        *("skills", f"--upskill-models={claude}", "-rA", "-vv"),
        *(f"--upskill-{kind}=out.{kind}" for kind in ("json", "html", "md")),
    )

    files = [path for path in pytester.path.rglob("*") if path.is_file()]
    texts = {path.name: path.read_text("utf-8", "replace") for path in files}
    texts["terminal"] = result.stdout.str() + result.stderr.str()
    assert "You sent ***" in texts["out.json"]
    assert [name for name, text in texts.items() if KEY in text] == []


def test_a_run_of_agents_has_a_limit_of_cost(
    run_once: Run, loopback: Loopback, claude: str
) -> None:
    follow(loopback, with_skill_only)
    prices = "upskill_prices=a = 0/3000000"

    files = ("--upskill-json=o.json", "--upskill-html=o.html")
    result = run_once("skills", f"--upskill-models=a={claude}", "-o", prices, "-rs", *files)

    # Each request may write 8,192 tokens of $3, more than $5: none is sent but the self-test's.
    assert loopback.requests == []
    assert "--upskill-max-cost: stopped, as the next request could exceed $5" in result.stdout.str()
    (session,) = json.loads(Path("o.json").read_text("utf-8"))["sessions"]
    assert session["options"]["max_cost"] == 5
    assert "max_cost" in Path("o.html").read_text("utf-8")


def test_a_reply_that_breaks_off_is_missing_data_and_no_miss(
    run_once: Run, loopback: Loopback, claude: str
) -> None:
    broken = {"content-length": "100000", "connection": "close"}
    loopback.answer = lambda _: Reply(body="event: ", content_type=STREAM, headers=broken)

    result = run_once("skills", f"--upskill-models=a={claude}")

    result.assert_outcomes(errors=1, skipped=1)
    result.stdout.fnmatch_lines(["*a: no complete reply from 127.0.0.1:*"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert len(loopback.requests) == 2


def test_what_the_agent_did_is_shown_beside_the_checks(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, claude: str
) -> None:
    write_skill({**CASE, "expected": {"file_exists": "no.txt", "triggered": True}})
    follow(loopback, with_skill_only)

    result = run_once("skills", f"--upskill-models=a={claude}")

    result.stdout.fnmatch_lines(["*file_exists no.txt*", "*triggered in 1 of 1 runs*"])
