"""A reply without an answer fails and says what came instead."""

from __future__ import annotations

import pytest

from pytest_upskill.trials.result import RunResult
from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Reply
from tests.sdk_requests import ask, model_at, request_to

CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
CALLED = "the model called a tool (look_up) instead of answering"
REASONED = "the model wrote only reasoning, and no answer"


@pytest.mark.parametrize(
    ("provider", "reply", "said"),
    [
        ("openai", Reply(message={"content": None, "tool_calls": [CALL]}, stop="x"), CALLED),
        ("openai", Reply(message={"content": None, "reasoning": "Hm."}), REASONED),
        ("openai", Reply(message={"content": []}), "the answer is empty"),
        (
            "openai",
            Reply(message={"content": "", "reasoning_content": "Hm."}, stop="max_tokens"),
            "the reasoning used up the output limit: raise --upskill-max-tokens",
        ),
        (
            "openai",
            Reply(status=400, body={"error": {"message": "no", "code": "content_filter"}}),
            "the model refused to answer",
        ),
        (
            "anthropic",
            Reply(status=400, text="Output blocked by content filtering policy"),
            "the model refused to answer",
        ),
        (
            "anthropic",
            Reply(content=[{"type": "tool_use", "name": "look_up", "input": {}}], stop="tool_use"),
            CALLED,
        ),
        ("anthropic", Reply(content=[{"type": "thinking", "thinking": "Hm."}]), REASONED),
        ("anthropic", Reply(content=[]), "the answer is empty"),
    ],
)
def test_a_reply_without_an_answer_never_passes_and_says_what_came_instead(
    loopback: Loopback, provider: str, reply: Reply, said: str
) -> None:
    loopback.replies.append(reply)

    result = RunResult(completion=ask(request_to(model_at(loopback, provider))), checks=())

    assert not result.passed
    assert result.ending == said


def test_a_run_without_an_answer_fails_though_its_checks_would_pass(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill({"id": "a", "input": QUESTION, "expected": {"not_contains": "sorry"}})
    loopback.answer = lambda _: Reply(text="<think>Hm.")

    result = run_once(f"--upskill-models=m=openai:m@{loopback.openai_url}", "skills")

    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines([REASONED])
