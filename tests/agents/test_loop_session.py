"""The built-in agent in a run of pytest: figures, pages, costs and limits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.agents.scripted_agent import COMPUTE, LOAD, SKILL, TOTAL, call, following
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Reply
from tests.sdk_requests import every_sdk

AGAIN = call("bash", command="true")
CASE = {
    "id": "total",
    "input": "Write the total of data/in.txt.",
    "workspace": {"data/in.txt": "100\n250\n"},
    "expected": {
        "file_contains": {"total.txt": "TOTAL 350"},
        "triggered": True,
        "ran_script": "scripts/total.py",
    },
}
FOLLOWING = following(
    [LOAD, COMPUTE, "It is 350."],
    [call("write_file", path="total.txt", content="350\n"), "It is 350."],
)
AGENT = {
    "agent.version": "1",
    "agent.offered": 1.0,
    "agent.loaded": 1.0,
    "agent.turns": 3.0,
    "agent.requests": 3.0,
    "agent.calls": 2.0,
}
"""What the report says of an agent that follows the script."""


@pytest.fixture
def sums(write_skill: WriteSkill) -> Path:
    folder = write_skill(CASE, name="sums")
    (folder / "SKILL.md").write_text(SKILL, "utf-8")
    (folder / "scripts").mkdir()
    (folder / "scripts/total.py").write_text(TOTAL, "utf-8")
    (folder / "evals").mkdir()
    (folder / "evals/answers.txt").write_text("TOTAL 350", "utf-8")
    return folder


@pytest.fixture
def on_agent(sums: Path, loopback: Loopback) -> tuple[str, str]:
    """Serve a model that follows the script; return the arguments that run the skill on it."""
    loopback.answer = FOLLOWING
    return f"--upskill-models=loop:small@{loopback.openai_url}", str(sums)


@pytest.mark.usefixtures("sums")
@every_sdk
def test_a_skill_is_measured_in_the_agent_and_replayed_without_it(
    run: Run, loopback: Loopback, provider: str
) -> None:
    loopback.answer = FOLLOWING
    url = loopback.url if provider == "anthropic" else loopback.openai_url
    args = (f"--upskill-models=loop:{provider}:small@{url}", "skills", "--upskill-json=out.json")

    result = run(*args)

    result.assert_outcomes(passed=3)
    said = " ".join(result.stdout.str().split())
    assert "sums on loop-small: offered / loaded in 1 / 1 of 1 runs" in said
    assert "triggered in 1 of 1 runs, ran_script scripts/total.py in 1 of 1 runs" in said
    (entry,) = json.loads(Path("out.json").read_text("utf-8"))["entries"]
    assert entry["figures"]["lift"] == 1.0
    assert entry["figures"].items() >= AGENT.items()
    asked = len(loopback.requests)
    loopback.answer = following(["No."], ["No."])

    replayed = run(*args, "--upskill-cache=replay", "--upskill-sandbox=off")

    replayed.assert_outcomes(passed=3)
    assert len(loopback.requests) == asked == 5


def test_the_page_shows_what_the_agent_did_and_left(
    run_once: Run, on_agent: tuple[str, str]
) -> None:
    run_once(*on_agent, "--upskill-html=o.html")

    page = Path("o.html").read_text("utf-8")
    assert "done, which does not count: <bdi>triggered: the agent chose the skill" in page
    assert "<code>skill</code></p>\n<pre>name: sums</pre>" in page
    assert "left <bdi>total.txt</bdi></summary>\n<pre>TOTAL 350" in page


def test_calls_count_in_both_arms_unless_only_an_agent_with_the_skill_can_make_them(
    run_once: Run, on_agent: tuple[str, str], write_skill: WriteSkill
) -> None:
    calls = [
        {"name": "bash", "pattern": r"scripts/total\.py"},
        {"name": "write_file", "pattern": "total.txt"},
    ]
    write_skill({**CASE, "expected": {"tool_called": [*calls, "skill"]}}, name="sums")

    result = run_once(*on_agent, "--upskill-json=o.json")

    (entry,) = json.loads(Path("o.json").read_text("utf-8"))["entries"]
    # Only the arm without the skill writes the file itself.
    assert entry["figures"]["lift"] == -1.0
    said = " ".join(result.stdout.str().split())
    assert "tool_called skill in 1 of 1 runs (not part of the pass rate)" in said


def test_a_case_that_only_an_agent_with_the_skill_can_pass_is_skipped_with_the_reason(
    run_once: Run, on_agent: tuple[str, str], write_skill: WriteSkill
) -> None:
    write_skill({**CASE, "expected": {"tool_called": "Skill"}}, name="sums")

    result = run_once(*on_agent, "-rs")

    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*decides nothing: only an agent with the skill can make the*"])


def test_a_run_record_is_small_readable_and_spared_by_pruning(
    run_once: Run, on_agent: tuple[str, str]
) -> None:
    run_once(*on_agent)
    before = sorted(Path.cwd().glob(".upskill/cache/agent-runs/*/*.json"))

    run_once("--upskill-models=other@http://127.0.0.1:9/v1", "skills", "--upskill-cache-prune")

    assert sorted(Path.cwd().glob(".upskill/cache/agent-runs/*/*.json")) == before
    assert len(before) == 2
    texts = [file.read_text("utf-8") for file in before]
    assert max(map(len, texts)) < 3000
    assert any(r'"text": "TOTAL 350\n"' in text for text in texts)


def test_the_plan_estimates_the_cost_by_recorded_runs(
    run_once: Run, on_agent: tuple[str, str], pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nupskill_prices = loop-small = 1000/1000")
    args = (*on_agent, "--upskill-max-cost=99", "--upskill-max-tokens=50")
    first = run_once(*args)

    again = run_once(*args, "--upskill-runs=2", "--upskill-dry-run")

    # Five requests of 11 tokens in and 7 out at $1,000 a million, by two runs.
    first.stdout.fnmatch_lines(["requested 2 answers: $0.0900"])
    again.stdout.fnmatch_lines(["*2 recorded, 2 to request*, likely $0.0900*"])


def test_a_session_that_stops_early_has_started_one_run_ahead_for_each_slot(
    run_once: Run, on_agent: tuple[str, str], loopback: Loopback
) -> None:
    loopback.answer = lambda _: Reply(text="No.", delay=0.1)

    result = run_once(*on_agent, "--upskill-runs=3", "--upskill-concurrency=1", "-x")

    result.assert_outcomes(failed=1, skipped=1)
    # Three runs with the skill, and one more.
    assert len(loopback.requests) <= 4


def test_a_run_at_a_limit_is_a_miss_that_no_judge_is_asked_about(
    run_once: Run, on_agent: tuple[str, str], write_skill: WriteSkill, loopback: Loopback
) -> None:
    expected = {"judge": "It says the total."}
    write_skill({**CASE, "max_turns": 1, "expected": expected}, name="sums")
    loopback.answer = following([AGAIN], [AGAIN])

    result = run_once(*on_agent, f"--upskill-judge=judge@{loopback.openai_url}")

    result.stdout.fnmatch_lines(["*it needs more than 1 turn*"])
    assert [received.body["model"] for received in loopback.requests] == ["small"] * 2


def test_a_run_stops_before_its_requests_exceed_the_budget(
    run_once: Run, on_agent: tuple[str, str], loopback: Loopback, pytester: pytest.Pytester
) -> None:
    # A request is billed as $.05, and reserves $.05 and a little more.
    loopback.answer = following([AGAIN], [AGAIN])
    reply = loopback.answer
    usage = {"prompt_tokens": 1, "completion_tokens": 50}
    loopback.answer = lambda received: replace(cast("Reply", reply(received)), usage=usage)
    pytester.makeini("[pytest]\nupskill_prices = loop-small = 0.01/1000")

    result = run_once(*on_agent, "--upskill-max-tokens=50", "--upskill-max-cost=0.3", "-rs")

    assert len(loopback.requests) == 5
    result.stdout.fnmatch_lines(
        ["*--upskill-max-cost: stopped, as the next request could exceed $0.3*"]
    )
    result.stdout.fnmatch_lines(["*0.25*"])


@pytest.mark.usefixtures("sums")
@pytest.mark.parametrize(
    ("args", "line"),
    [
        (
            ("--upskill-models=loop:m@http://127.0.0.1:9/v1", "--upskill-sandbox=off"),
            "*sandbox level 'off' hides no files from an agent's tools: use --upskill-sandbox*",
        ),
        (
            ("--upskill-models=loop:offline",),
            "*loop:offline:offline: offline accepts no tools, which loop needs: choose another *",
        ),
    ],
)
def test_an_agent_that_cannot_run_is_refused_in_one_line(
    run_once: Run, args: tuple[str, ...], line: str
) -> None:
    result = run_once(*args, "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([line])
