"""Names of parameters in requests: those of each format, of a host, of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.answers.recordings import identity
from pytest_upskill.models import Request, parse_model
from pytest_upskill.models.anthropic import messages_body
from pytest_upskill.models.errors import refused_parameter
from pytest_upskill.models.openai import Dialect
from pytest_upskill.models.parameters import Parameters
from tests.loopback import Loopback, Reply
from tests.models.parameters import parameters_in, parametrized
from tests.sdk_requests import ask, model_at, request_to

ALL = (
    "temperature=0.5",
    "top_p=0.9",
    "seed=7",
    'stop=["END", "\\n"]',
    "effort=low",
    'body.top_k={"b": 1, "a": 2}',
)


def chat_body(request: Request) -> dict[str, Any]:
    return Dialect.of(request.model).body(request)


def test_chat_completions_have_openais_names() -> None:
    request = request_to(parametrized("x@http://h/v1", *ALL))

    assert parameters_in(chat_body(replace(request, run=2))) == {
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 9,
        "stop": ["END", "\n"],
        "reasoning_effort": "low",
        "top_k": {"a": 2, "b": 1},
    }


def test_messages_have_anthropics_names() -> None:
    given = (entry for entry in ALL if not entry.startswith("seed"))
    request = request_to(parametrized("anthropic:x@http://h", *given))

    assert parameters_in(messages_body(replace(request, run=2))) == {
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["END", "\n"],
        "output_config": {"effort": "low"},
        "top_k": {"a": 2, "b": 1},
    }


@pytest.mark.parametrize(
    ("spec", "entry", "field"),
    [
        ("mistral:x", "seed=1", {"random_seed": 1}),
        ("x@https://api.mistral.ai/v1", "seed=1", {"random_seed": 1}),
        ("openrouter:x", "effort=high", {"reasoning": {"effort": "high"}}),
    ],
)
def test_a_host_gets_its_own_names(spec: str, entry: str, field: dict[str, Any]) -> None:
    assert parameters_in(chat_body(request_to(parametrized(spec, entry)))) == field


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        ("x@http://h/v1", "max_tokens"),
        ("openai:gpt-4.1", "max_completion_tokens"),
        ("azure=gpt-6-luna@https://me.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("openrouter:openai/o4-mini", "max_completion_tokens"),
        ("ollama:gpt-oss:20b", "max_tokens"),
    ],
)
def test_the_name_of_the_limit_is_that_of_the_model(spec: str, limit: str) -> None:
    body = chat_body(request_to(parse_model(spec)))

    assert [name for name in body if name.startswith("max_")] == [limit]


def test_the_name_of_the_limit_changes_on_the_400_that_asks_for_it(loopback: Loopback) -> None:
    refusal = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    loopback.replies += [Reply(status=400, text=refusal), "first"]

    answer = ask(request_to(model_at(loopback, "openai", "x")))

    names = [{key for key in each.body if key.startswith("max_")} for each in loopback.requests]
    assert answer.text == "first"
    assert sorted(map(tuple, names)) == [("max_completion_tokens",), ("max_tokens",)]


@pytest.mark.parametrize(
    ("spec", "entries", "refused"),
    [
        ("haiku", ["temperature=0"], "the host of haiku refuses temperature: write"),
        ("haiku", ["seed=1", "top_p=1"], "the host of haiku refuses top_p and seed: write"),
        ("gpt-4.1", ["temperature=1"], ""),
        ("anthropic:x@http://h", ["temperature=1"], ""),
        ("anthropic:x@http://h", ["seed=1"], "the host of x refuses seed: write"),
        ("groq:x", ["temperature=1"], ""),
    ],
)
def test_a_parameter_that_a_host_is_known_to_refuse_is_found_beforehand(
    spec: str, entries: list[str], refused: str
) -> None:
    problem = refused_parameter(parametrized(spec, *entries))

    assert bool(problem) == bool(refused)
    assert refused in problem


def test_parameters_are_part_of_a_recordings_identity_and_absent_ones_are_not() -> None:
    plain = request_to(parse_model("x@http://h/v1"))
    warm = request_to(parametrized("x@http://h/v1", "temperature=0.5"))
    cold = request_to(parametrized("x@http://h/v1", "temperature=0.0"))

    assert len({identity(each, "http://h/v1") for each in (plain, warm, cold)}) == 3
    assert identity(plain, "http://h/v1").startswith("85c98b4e4493411a")


def test_without_parameters_the_request_has_none() -> None:
    assert not Parameters()
    assert parameters_in(chat_body(request_to(parse_model("x@http://h/v1")))) == {}
