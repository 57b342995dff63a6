"""Queries in which the model of an agent chooses a skill, from what the agent shows of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from tests import agent_programs
from tests.agents.scripted_agent import Step, call, following
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Received, Reply

pytestmark = agent_programs.needs_bubblewrap

QUERIES = (
    {"id": "take", "input": "Send the invoice.", "should_trigger": True},
    {"id": "other", "input": "Book a train.", "expected_skill": "travel"},
    {"id": "leave", "input": "Sing a song.", "should_trigger": False},
)
_LOOP: dict[str, Sequence[Step]] = {
    "invoice": [call("bash", command="ls"), call("skill", name="billing"), "Never asked for."],
    "train": [call("read_file", path="~/.agents/skills/travel/SKILL.md"), "Never asked for."],
    "song": [call("bash", command="ls")],
    "greeting": [call("skill", name="greeting")],
}
_CLAUDE: dict[str, Sequence[agent_programs.Step]] = {
    "invoice": [agent_programs.bash("ls"), agent_programs.skill("billing"), "Never asked for."],
    "train": [agent_programs.skill("travel"), "Never asked for."],
    "song": [agent_programs.bash("ls")] * 9,
    "greeting": [agent_programs.skill("greeting")],
}


def loop_on(loopback: Loopback) -> str:
    def answer(received: Received) -> Reply | str:
        query = next(m["content"] for m in received.body["messages"] if m["role"] == "user")
        steps = next(steps for word, steps in _LOOP.items() if word in query)
        return following(steps, steps)(received)

    loopback.answer = answer
    return f"a=loop:small@{loopback.openai_url}"


def claude_on(loopback: Loopback) -> str:
    def step(received: Received) -> agent_programs.Step:
        said = json.dumps(received.body["messages"][0])
        steps = next(steps for word, steps in _CLAUDE.items() if word in said)
        return steps[agent_programs.calls_so_far(received)]

    agent_programs.follow(loopback, step)
    return f"a=claude-code:haiku@{loopback.url}"


@pytest.mark.usefixtures("claude")
@pytest.mark.parametrize("on", [loop_on, claude_on], ids=["loop", "claude-code"])
def test_queries_run_in_the_agent_end_at_the_choice_and_are_replayed(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, on: Callable[[Loopback], str]
) -> None:
    write_skill(name="travel", body="Trains are blue.")
    write_skill(*QUERIES, body="Invoices are red.")
    args = (f"--upskill-models={on(loopback)}", "skills/billing", "--upskill-json=out.json")

    result = run_once(*args)

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["billing on a*100%*0%*100%*3"])
    sent = json.dumps([received.body for received in loopback.requests])
    # A probe, two for the invoice, one for the train, three for the song.
    assert len(loopback.requests) == 7
    assert "Facts about travel" in sent
    assert "Trains are blue" not in sent
    assert "Invoices are red" not in sent

    again = run_once(*args, "--upskill-cache=replay")

    again.assert_outcomes(passed=4)
    assert len(loopback.requests) == 7
