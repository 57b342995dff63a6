"""What the exchanges of a program with its model tell, wire format by wire format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from pytest_upskill.agents.programs.claude_code import ClaudeCode
from pytest_upskill.agents.programs.codex import Codex
from pytest_upskill.agents.self_test import Script
from pytest_upskill.agents.tally import RunTally, is_loaded, results_in, texts_in
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import (
    AgentRun,
    AgentTask,
    Completion,
    InstalledSkill,
    ProviderError,
    RunLimits,
    ToolCall,
)

LINES = [f"Rule number {number} of the invoices." for number in range(100)]
HEAD = "---\nname: csv\ndescription: How to bill.\n---\n"
SKILL = (WorkspaceFile(name="SKILL.md", text="\n".join((HEAD, *LINES))),)
FILE = "~/.agents/skills/csv/SKILL.md"
BROKEN = "the model called the skill, but its instructions never reached it"


def said(*calls: ToolCall, tokens: int | None = 5) -> Completion:
    return Completion(text="", tool_calls=calls, input_tokens=tokens, output_tokens=0)


def tally_of(task: AgentTask, **more: Any) -> RunTally:
    return RunTally(
        task=task, skill_of=Codex().skill_of, may_be_denied=Codex().may_be_denied, **more
    )


def codex_run(command: str, result: str) -> AgentRun:
    """Return what is told of a run in which Codex runs a command with this result."""
    tally = tally_of(AgentTask(skill_name="csv", skill=SKILL))
    offer: dict[str, Any] = {"content": f"csv: How to bill. {FILE}"}
    call = ToolCall(name="exec_command", id="c1", arguments={"cmd": command})
    sent = {"type": "function_call", "call_id": "c1", "arguments": json.dumps({"cmd": command})}
    output = {"type": "function_call_output", "call_id": "c1", "output": result}
    for conversation, reply in (([offer], said(call)), ([offer, sent, output], said())):
        tally.note_request([*texts_in(conversation)], results_in(conversation))
        tally.note_reply(reply, 1)
    return tally.run("1", "")


@pytest.mark.parametrize(
    ("command", "result", "called", "loaded", "broken"),
    [
        (f"cat {FILE}", "\n".join((HEAD, *LINES)), True, True, ""),
        (f"sed -n 1,40p {FILE}", "\n".join((HEAD, *LINES[:35])), True, True, ""),
        (f"head -4 {FILE}", HEAD, True, False, ""),
        (f"wc -l {FILE}", "104", True, False, ""),
        (f"cat {FILE}", "cat: SKILL.md: No such file or directory", True, False, BROKEN),
        ("cat ~/.agents/skills/csv-tools/SKILL.md", "No such file", False, False, ""),
    ],
)
def test_a_skill_that_a_command_reads_is_loaded_as_far_as_it_asked(
    command: str, result: str, *, called: bool, loaded: bool, broken: str
) -> None:
    run = codex_run(command, result)

    assert (run.called, run.loaded, run.broken) == (called, loaded, broken)


@pytest.mark.parametrize(
    ("name", "arguments", "asked"),
    [
        ("Skill", {"skill": "csv"}, "csv"),
        ("Skill", {"skill": "/csv"}, "csv"),
        ("Skill", {"skill": "tables:csv"}, "csv"),
        ("Skill", {"skill": "csv-tools"}, "csv-tools"),
        ("Skill", {}, ""),
        ("Read", {"file_path": "/home/agent/.claude/skills/csv/SKILL.md"}, "csv"),
        ("Read", {"file_path": "/workspace/csv/SKILL.md"}, ""),
        ("Bash", {"command": "ls ~/.claude/skills"}, ""),
    ],
)
def test_which_skill_a_call_of_claude_code_asks_for(
    name: str, arguments: Mapping[str, Any], asked: str
) -> None:
    assert ClaudeCode().skill_of(ToolCall(name=name, arguments=arguments)) == asked


def test_a_skill_that_is_asked_for_by_its_folder_is_taken_by_its_name() -> None:
    other = InstalledSkill(name="a b", files=SKILL)
    task = AgentTask(skill_name="csv", skill=SKILL, neighbours=(other,), chooses=True)
    tally = tally_of(task)
    read = ToolCall(name="exec_command", arguments={"cmd": "cat ~/.agents/skills/a-b/SKILL.md"})

    tally.note_reply(said(read), 1)

    assert tally.has_chosen
    assert tally.run("1", "").taken == "a b"


def test_tokens_that_a_server_does_not_count_are_estimated_for_the_limit() -> None:
    tally = tally_of(AgentTask(), limits=RunLimits(tokens=1000))
    look = ToolCall(name="exec_command", arguments={"cmd": "ls"})
    for size, limit in ((1600, ""), (1600, "it needs more than 1,000 tokens")):
        tally.note_reply(said(look, tokens=None), size)
        assert tally.exceeded_limit() == limit

    assert tally.completion().input_tokens is None


def test_a_run_that_fails_after_a_side_question_has_cost_that_question() -> None:
    tally = tally_of(AgentTask())
    assert tally.paid() is None

    tally.note_reply(replace(said(), cost_usd=0.25), 1, in_conversation=False)

    paid = tally.paid()
    assert paid is not None
    assert paid.cost_usd == 0.25


def test_a_program_that_asks_for_no_stream_fails_its_self_test_with_a_reason() -> None:
    asked = httpx2.Request("POST", "http://script", content=b'{"model": "m"}')

    with pytest.raises(ProviderError, match="a complete reply instead of a streamed one"):
        Script("responses", [])(asked)


def test_a_long_skill_that_is_read_in_two_parts_has_reached_the_agent() -> None:
    lines = [f"Rule number {number} of the invoices.\n" for number in range(100)]
    text = f"---\nname: billing\ndescription: d\n---\n\n{''.join(lines)}"
    task = AgentTask(skill_name="billing", skill=(WorkspaceFile(name="SKILL.md", text=text),))
    first, second = "".join(lines[:45]), "".join(lines[45:90])

    assert is_loaded(task, [first, second])
    assert not is_loaded(task, [first])
