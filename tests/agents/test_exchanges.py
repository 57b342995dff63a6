"""What the exchanges of a program with its model tell, wire format by wire format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from pytest_upskill.agents.exchanges import Exchanges, sent_to_model
from pytest_upskill.agents.self_test import play_script
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


def exchanges_of(task: AgentTask, **more: Any) -> Exchanges:
    return Exchanges(task=task, skill_tool=("Skill", "skill"), redact=str, **more)


def run_with(call: ToolCall, *sent: tuple[str, str], tool: tuple[str, str] = ("", "")) -> AgentRun:
    """Return what is told of a run whose model makes a call, and is then sent these texts."""
    exchanges = Exchanges(
        task=AgentTask(skill_name="csv", skill=SKILL), skill_tool=tool, redact=str
    )
    offer = ("", f"csv: How to bill. {FILE}")
    for request, reply in (([offer], said(call)), ([offer, *sent], said())):
        exchanges.note_request(request)
        exchanges.note_reply(reply, 1)
    return exchanges.run("1", "")


NUMBERED = "\n".join(f"{number:6}\t  {line}" for number, line in enumerate(LINES, 5))


@pytest.mark.parametrize(
    ("result", "loaded"),
    [
        ("\n".join((HEAD, *LINES)), True),
        ("\n".join((HEAD, *LINES[:2])), True),
        (LINES[70], True),
        (NUMBERED, True),
        (f"/home/agent/{FILE}:75:{LINES[70]}", True),
        (json.dumps({"output": "\n".join(LINES), "exit": 0}), True),
        (repr(LINES[3:9]), True),
        (HEAD, False),
        ("104 SKILL.md", False),
        ("cat: SKILL.md: No such file or directory", False),
    ],
)
def test_a_skill_is_loaded_when_its_text_is_in_a_result(result: str, *, loaded: bool) -> None:
    call = ToolCall(name="exec_command", id="c1", arguments={"cmd": "x"})

    run = run_with(call, ("c1", result))

    assert (run.called, run.loaded, run.broken) == (loaded, loaded, "")


def test_a_skill_that_its_tool_does_not_show_is_not_measured() -> None:
    call = ToolCall(name="Skill", id="c1", arguments={"skill": "tables:csv"})

    run = run_with(call, ("c1", "Permission denied"), tool=("Skill", "skill"))

    assert (run.called, run.loaded, run.broken) == (True, False, BROKEN)


def test_without_a_skill_no_call_is_one_of_the_skill() -> None:
    exchanges = exchanges_of(AgentTask())
    for sent in ([("", "Count.")], [("", "Count."), ("c1", "3")]):
        exchanges.note_request(sent)
        exchanges.note_reply(said(ToolCall(name="bash", id="c1", arguments={"command": "wc"})), 1)

    assert not exchanges.run("1", "").called


def test_what_the_model_writes_itself_it_has_not_read() -> None:
    call = ToolCall(name="bash", id="c1", arguments={"command": f"echo '{LINES[0]}'"})

    assert run_with(call, ("c1", LINES[0])).loaded is False


@pytest.mark.parametrize("end", ["---", "..."])
def test_a_description_of_several_lines_does_not_show_that_a_skill_was_read(end: str) -> None:
    further = "  Totals are in cents, and never in dollars."
    text = f"---\nname: csv\ndescription: How to bill.\n{further}\n{end}\n\nThe colour is blue."
    skill = WorkspaceFile(name="SKILL.md", text=text)
    exchanges = exchanges_of(AgentTask(skill_name="csv", skill=(skill,)))

    exchanges.note_request([("", "csv: How to bill.")])
    exchanges.note_request([("c1", further)])

    assert exchanges.run("1", "").loaded is False


@pytest.mark.parametrize("place", ["skill", "workspace"])
def test_lines_that_stand_elsewhere_too_do_not_show_that_a_skill_was_read(place: str) -> None:
    shared = "Totals are in cents, never in dollars."
    text = f"{HEAD}\n{shared}\nOnly the skill itself says that the colour is blue."
    body, notes = (WorkspaceFile(name=n, text=t) for n, t in (("SKILL.md", text), ("a.md", shared)))
    in_skill, in_workspace = ((notes,), ()) if place == "skill" else ((), (notes,))
    exchanges = exchanges_of(
        AgentTask(skill_name="csv", skill=(body, *in_skill), workspace=in_workspace)
    )

    exchanges.note_request([("", "csv: How to bill.")])
    exchanges.note_request([("c1", shared)])

    assert exchanges.run("1", "").loaded is False


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "mine"}]},
                      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1",
                                                    "content": [{"text": "theirs"}]}]}]},
        {"input": [{"type": "function_call", "call_id": "c1", "arguments": "mine"},
                   {"type": "function_call_output", "call_id": "c1", "output": "theirs"}]},
    ],
)  # fmt: skip
def test_results_are_told_from_what_the_model_wrote(body: Mapping[str, Any]) -> None:
    sent = [*sent_to_model(body)]

    assert ("c1", "theirs") in sent
    assert "mine" not in str(sent)


def test_a_skill_that_is_asked_for_by_its_folder_is_taken_by_its_name() -> None:
    other = InstalledSkill(name="a b", files=SKILL)
    task = AgentTask(skill_name="csv", skill=SKILL, neighbours=(other,), chooses=True)
    exchanges = exchanges_of(task)
    read = ToolCall(name="Skill", arguments={"skill": "a-b"})

    exchanges.note_reply(said(read), 1)

    assert exchanges.has_chosen
    assert exchanges.run("1", "").taken == "a b"


def test_tokens_that_a_server_does_not_count_are_estimated_for_the_limit() -> None:
    exchanges = exchanges_of(AgentTask(), limits=RunLimits(tokens=1000))
    look = ToolCall(name="exec_command", arguments={"cmd": "ls"})
    for size, limit in ((1600, ""), (1600, "it needs more than 1,000 tokens")):
        exchanges.note_reply(said(look, tokens=None), size)
        assert exchanges.exceeded_limit() == limit

    assert exchanges.completion().input_tokens is None


def test_a_run_that_fails_after_a_side_question_has_cost_that_question() -> None:
    exchanges = exchanges_of(AgentTask())
    assert exchanges.paid() is None

    exchanges.note_reply(replace(said(), cost_usd=0.25), 1, in_conversation=False)

    paid = exchanges.paid()
    assert paid is not None
    assert paid.cost_usd == 0.25


def test_a_program_that_asks_for_no_stream_fails_its_self_test_with_a_reason() -> None:
    asked = httpx2.Request("POST", "http://script", content=b'{"model": "m"}')

    with pytest.raises(ProviderError, match="a complete reply instead of a streamed one"):
        play_script("responses", [])(asked)
