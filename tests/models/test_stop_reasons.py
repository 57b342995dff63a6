"""What servers call the end of an answer, in three wire formats."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_upskill.models.anthropic import read_message
from pytest_upskill.models.openai import read_chat
from pytest_upskill.models.responses import read_response

CUT = ("length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded")


def chat(reason: str | None) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "It is 3"}, "finish_reason": reason}]}


def messages(reason: str | None) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "It is 3"}], "stop_reason": reason}


@pytest.mark.parametrize("word", CUT)
def test_every_word_for_an_answer_that_was_cut_is_known(word: str) -> None:
    assert read_chat(chat(word)).stop_reason == "max_tokens"
    assert read_message(messages(word)).stop_reason == "max_tokens"


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        ({"reason": "max_output_tokens"}, "max_tokens"),
        ({"reason": "content_filter"}, "refusal"),
        (None, "max_tokens"),
    ],
)
def test_an_incomplete_response_was_cut_unless_it_says_why(details: Any, reason: str) -> None:
    body = {"output": [], "status": "incomplete", "incomplete_details": details}

    assert read_response(body).stop_reason == reason


def test_an_unknown_word_is_no_cut() -> None:
    assert read_chat(chat(None)).stop_reason == "other"
    assert read_chat(chat("stop")).stop_reason == "end"
