"""What a model does in a trigger trial, and what it counts as."""

from __future__ import annotations

import pytest

from pytest_upskill.cases.catalogue import Catalogue, ListedSkill
from pytest_upskill.models import Completion, Request, ToolCall, parse_model
from pytest_upskill.trials.trigger_trial import (
    Choice,
    choice_of,
    choosing,
    join_completions,
    longest_requests,
    next_request,
)

CATALOGUE = Catalogue.of(
    [
        ListedSkill(name="csv", description="Reads commas."),
        ListedSkill(name="tsv", description="Reads tabs."),
    ]
)
MODEL = parse_model("openai:small")


def asked(query: str) -> Request:
    request = Request(model=MODEL, frame="", skill="", user=query, max_tokens=99, run=0)
    return choosing(request, catalogue=CATALOGUE, own=CATALOGUE.skills[0])


REQUEST = asked("Read it.")
LOOK = ToolCall(name="bash", id="b", arguments={"command": "ls"})


def skill(name: object = "csv") -> ToolCall:
    return ToolCall(name="skill", id="s", arguments={"name": name})


def said(*calls: ToolCall, tokens: int | None = 5, cost: float | None = 1.0) -> Completion:
    return Completion(
        text="", tool_calls=calls, input_tokens=tokens, output_tokens=tokens, cost_usd=cost
    )


def play(*replies: Completion) -> tuple[Choice, int]:
    """Return what is chosen by a model that replies so, and how often it was requested."""
    completions: list[Completion] = []
    request = REQUEST
    for reply in replies:
        completions.append(reply)
        following = next_request(request, reply)
        if following is None:
            break
        request = following
    return choice_of(completions, CATALOGUE.names), len(completions)


@pytest.mark.parametrize(
    ("replies", "text", "requests"),
    [
        ([said(skill())], "chose csv", 1),
        ([said(skill(" tsv "))], "chose tsv", 1),
        ([said(skill("xml"))], "chose 'xml', which is not a skill", 1),
        ([said()], "chose no skill", 1),
        ([said(LOOK), said(skill())], "chose csv", 2),
        ([said(LOOK), said()], "only looked around", 2),
        ([said(LOOK), said(LOOK), said(LOOK), said(skill())], "only looked around", 3),
        ([said(LOOK, skill("tsv"))], "chose tsv", 1),
        ([said(skill("tsv"), skill("csv"))], "chose tsv", 1),
        ([said(ToolCall(name="skill", malformed="{")), said(skill())], "chose csv", 2),
        ([said(skill(None)), said()], "called the skill tool without the name of a skill", 2),
        ([said(ToolCall(name="Skill", arguments={"skill": "csv"})), said(skill())], "chose csv", 2),
    ],
)
def test_each_reply_of_a_model_counts_as_a_choice_or_as_none(
    replies: list[Completion], text: str, requests: int
) -> None:
    choice, sent = play(*replies)

    assert (choice.text, sent) == (text, requests)


@pytest.mark.parametrize(
    ("call", "reply", "failed"),
    [
        (LOOK, "(no output)", False),
        (ToolCall(name="list_files", id="b", arguments={}), "The folder is empty.", False),
        (ToolCall(name="skill", id="b", malformed="{"),
         "Error: the arguments are not a JSON object.", True),
        (ToolCall(name="skill", id="b"), "Error: the argument 'name' is missing.", True),
        (ToolCall(name="grep", id="b"), "Error: there is no tool 'grep'.", True),
    ],
)  # fmt: skip
def test_each_call_that_ends_nothing_gets_one_reply(
    call: ToolCall, reply: str, failed: bool
) -> None:
    following = next_request(REQUEST, said(call))

    assert following is not None
    (result,) = following.turns[0].results
    assert (result.call_id, result.text, result.failed) == ("b", reply, failed)


def test_the_requests_of_a_run_are_counted_together() -> None:
    one = join_completions([said(LOOK), said(skill())])

    assert (one.input_tokens, one.cost_usd, len(one.tool_calls)) == (10, 2.0, 2)
    assert join_completions([said(LOOK, tokens=None, cost=None), said(skill())]).cost_usd is None


def test_a_run_takes_no_more_requests_than_the_plan_counts() -> None:
    assert [len(request.turns) for request in longest_requests(REQUEST)] == [0, 1, 2]


def test_the_catalogue_is_the_part_that_providers_cache() -> None:
    same = asked("Other.")

    assert same.skill is REQUEST.skill
    assert same.system == REQUEST.system
