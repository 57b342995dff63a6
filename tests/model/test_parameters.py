"""Parameters of requests: how they are written, sent, recorded, reported and refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.completion import ProviderError
from pytest_upskill.completions.identity import identity
from pytest_upskill.model import Model, parse_model
from pytest_upskill.model.parameters import ParameterError, Parameters, read_parameters
from pytest_upskill.providers.error_hints import refused_parameter
from pytest_upskill.session.options.parameters import with_parameters
from pytest_upskill.wire.chat import chat_body
from pytest_upskill.wire.messages import messages_body
from tests.conftest import Run, WriteSkill, recordings
from tests.loopback import Loopback, Reply
from tests.sdk_requests import ask, model_at, request_to
from tests.session.test_options import only_line

ALL = (
    "temperature=0.5",
    "top_p=0.9",
    "seed=7",
    'stop=["END", "\\n"]',
    "effort=low",
    'body.top_k={"b": 1, "a": 2}',
)


def parametrized(spec: str, *entries: str) -> Model:
    return replace(parse_model(spec), parameters=read_parameters(entries)[""])


def parameters_in(body: dict[str, Any]) -> dict[str, Any]:
    usual = {"model", "messages", "system", "max_tokens", "max_completion_tokens"}
    return {name: value for name, value in body.items() if name not in usual}


@pytest.mark.parametrize(
    ("entry", "spelled"),
    [
        ("temperature=0.0", "temperature=0"),
        ("temperature=1e-1", "temperature=0.1"),
        ("stop=END", 'stop=["END"]'),
        ('body.min_p={"b":1, "a":[true]}', 'body.min_p={"a": [true], "b": 1}'),
        ("max_tokens=64", "max_tokens=64"),
        ("seed = 3", "seed=3"),
    ],
)
def test_a_parameter_has_one_spelling(entry: str, spelled: str) -> None:
    assert read_parameters([entry])[""].entries == (spelled,)
    assert read_parameters([f"glm-4.7:{entry}"])["glm-4.7"].entries == (spelled,)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("temperature", "write [LABEL:]KEY=VALUE, such as temperature=0"),
        ("temprature=0", "no parameter 'temprature' (did you mean 'temperature'?): write "),
        ("reasoning_effort=low", "(did you mean 'effort'?)"),
        ("temperature=3", "must be between 0 and 2"),
        ("temperature=nan", "must be between 0 and 2"),
        ("temperature=hot", "'hot' is not a number"),
        ("top_p=0", "must be above 0 and at most 1"),
        ("seed=-1", "must be a whole number between 0 and 2147483647"),
        ("seed=1.5", "must be a whole number between 0 and 2147483647"),
        ("effort=extreme", "must be one of none, minimal, low, medium, high, xhigh, max"),
        ('stop=["END"', "is not JSON"),
        ("stop=[]", "must be a text or a list of texts"),
        ("max_tokens=0", "must be a whole number between 1 and 1000000000"),
        ("body.top_k=NaN", "'NaN' is not JSON"),
        ("body.mode=fast", "'fast' is not JSON: a text needs quotes, '\"fast\"'"),
        ("body.messages=[]", "'messages' cannot be set: it is part of what is measured"),
        ("body.max_completion_tokens=9", "write max_tokens=9 instead"),
    ],
)
def test_a_bad_parameter_is_refused_in_one_line(entry: str, problem: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_parameters([entry])

    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(ParameterError, match="seed is given twice"):
        read_parameters(["seed=1", "m:seed=2", "seed=3"])


def test_a_models_own_parameters_complete_those_of_all() -> None:
    everyone, own = read_parameters(["seed=1", "body.a=1", "m:seed=0", "m:body.b=2"]).values()

    assert own.with_defaults(everyone).entries == ("seed=0", "body.a=1", "body.b=2")


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


@pytest.mark.parametrize(
    ("spec", "refusal"),
    [
        (
            "x",
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        ),
        ("gpt-6-x", "body.max_completion_tokens: Extra inputs are not permitted"),
    ],
)
def test_the_name_of_the_limit_changes_on_the_400_that_asks_for_it(
    loopback: Loopback, spec: str, refusal: str
) -> None:
    loopback.replies += [Reply(status=400, text=refusal), "first"]

    answer = ask(request_to(model_at(loopback, "openai", spec)))

    names = [{key for key in each.body if key.startswith("max_")} for each in loopback.requests]
    assert answer.text == "first"
    assert sorted(map(tuple, names)) == [("max_completion_tokens",), ("max_tokens",)]


def test_the_name_of_the_limit_is_remembered_for_the_session(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill()
    know = loopback.answer

    def azure(received: Any) -> Any:
        if "max_tokens" in received.body:
            return Reply(status=400, text="Use 'max_completion_tokens' instead of 'max_tokens'.")
        return know(received)

    loopback.answer = azure
    result = run_once("--upskill-models", model, "--upskill-runs=5", "--upskill-concurrency=1")

    result.assert_outcomes(passed=3)
    assert len(loopback.requests) == 11


@pytest.mark.parametrize(
    ("spec", "entries", "refused"),
    [
        ("haiku", ["temperature=0"], "Anthropic refuses temperature for claude-haiku-5-5"),
        ("haiku", ["seed=1", "top_p=1"], "Anthropic refuses top_p and seed for claude-haiku"),
        ("gpt-6-luna", ["temperature=1"], "OpenAI refuses temperature for gpt-6-luna: set it for"),
        ("gpt-6-luna", ["temperature=1", "effort=none"], None),
        ("gpt-4.1", ["temperature=1"], None),
        ("anthropic:x@http://h", ["temperature=1"], None),
        ("anthropic:x@http://h", ["seed=1"], "format, in which x is asked, has no seed: set it"),
        ("groq:x", ["temperature=1"], None),
    ],
)
def test_a_parameter_that_a_host_is_known_to_refuse_is_found_beforehand(
    spec: str, entries: list[str], refused: str | None
) -> None:
    problem = refused_parameter(parametrized(spec, *entries))

    assert (problem is None) if refused is None else (problem is not None and refused in problem)


def test_a_400_names_the_parameter_that_is_refused(loopback: Loopback) -> None:
    loopback.replies.append(Reply(status=400, text="'top_p' must be 1 for this model"))
    model = replace(
        model_at(loopback, "openai"), parameters=read_parameters(["seed=1", "top_p=0.5"])[""]
    )

    with pytest.raises(ProviderError, match=r"leave out --upskill-param top_p=0\.5"):
        ask(request_to(model))


def test_parameters_are_part_of_a_recordings_identity_and_absent_ones_are_not() -> None:
    plain = request_to(parse_model("x@http://h/v1"))
    warm = request_to(parametrized("x@http://h/v1", "temperature=0.5"))
    cold = request_to(parametrized("x@http://h/v1", "temperature=0.0"))

    assert len({identity(each, "http://h/v1") for each in (plain, warm, cold)}) == 3
    assert identity(plain, "http://h/v1").startswith("85c98b4e4493411a")


def test_a_run_sends_reports_and_replays_its_parameters(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    pytester: pytest.Pytester,
) -> None:
    write_skill()
    args = (
        *("--upskill-models", f"{model},cold=openai:small@{loopback.openai_url}"),
        "--upskill-runs=2",
        *("--upskill-param", "top_p=0.9", "--upskill-param", "m:seed=5"),
        *("--upskill-param", "cold:temperature=0"),
        *("--upskill-json=report.json", "--upskill-md=report.md", "--junitxml=junit.xml"),
    )

    result = run_once(*args)
    asked = len(loopback.requests)
    again = run_once(*args, "--upskill-cache=replay")

    sent = [parameters_in(dict(each.body)) for each in loopback.requests]
    assert sorted(each["seed"] for each in sent if "seed" in each) == [5, 5, 6, 6]
    assert [each for each in sent if "seed" not in each] == [{"temperature": 0, "top_p": 0.9}] * 2
    result.stdout.fnmatch_lines(
        ["upskill: m (openai:small@* top_p=0.9 seed=5), cold (*temperature=0 top_p=0.9); runs: 2;*"]
    )
    assert "1 for cold, as further runs at temperature 0 would be copies" in " ".join(
        result.stdout.str().split()
    )
    report = json.loads(pytester.path.joinpath("report.json").read_text("utf-8"))
    assert report["sessions"][0]["options"]["params"] == [
        "m:top_p=0.9",
        "m:seed=5",
        "cold:temperature=0",
        "cold:top_p=0.9",
    ]
    for name in ("report.md", "junit.xml"):
        assert "top_p=0.9 seed=5" in pytester.path.joinpath(name).read_text("utf-8"), name
    assert len(recordings(pytester.path)) == asked == 6
    assert (again.ret, len(loopback.requests)) == (result.ret, asked)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("tempreature=0", "--upskill-param: 'tempreature=0': no parameter 'tempreature' (did you"),
        ("ofline:seed=1", "--upskill-param: no model has the label 'ofline' (did you mean 'offli"),
        (
            "judge:seed=1",
            "--upskill-param: no model has the label 'judge': write one of m, offline",
        ),
        (
            "offline:seed=1",
            "--upskill-param: offline is not a language model and takes no parameters",
        ),
    ],
)
def test_a_bad_option_is_refused_before_anything_is_sent(
    run_once: Run, write_skill: WriteSkill, model: str, entry: str, problem: str
) -> None:
    write_skill()

    result = run_once("--upskill-models", f"{model},offline", "--upskill-param", entry)

    assert only_line(result).startswith(problem)


def test_a_judge_has_parameters_of_its_own() -> None:
    small, judge = parse_model("x@http://h/v1"), parse_model("haiku")

    (model,), own_judge = with_parameters((small,), judge, ["top_p=1", "judge:effort=low"])

    assert model.parameters.entries == ("top_p=1",)
    assert own_judge is not None
    assert own_judge.parameters.entries == ("effort=low",)


def test_an_agent_that_chooses_its_parameters_itself_takes_none() -> None:
    own, other = parse_model("loop:x@http://h/v1"), parse_model("claude-code:haiku")

    (model,), _ = with_parameters((own,), None, ["temperature=0.5"])
    with pytest.raises(pytest.UsageError, match="claude-code chooses its parameters itself"):
        with_parameters((other,), None, ["temperature=0.5"])

    assert model.parameters.entries == ("temperature=0.5",)
    assert with_parameters((other,), None, ["max_tokens=9"])[0][0].parameters.max_tokens == 9


def test_a_parameter_that_the_host_refuses_is_refused_before_anything_is_sent(
    run_once: Run, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 20)
    write_skill()

    result = run_once("--upskill-models=haiku", "--upskill-param=temperature=0", "skills")

    assert only_line(result) == (
        "--upskill-param: Anthropic refuses temperature for claude-haiku-5-5: set it for other "
        "models only, as in LABEL:temperature=..."
    )


def test_parameters_in_the_ini_file_hold_unless_the_command_line_has_any(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    pytester: pytest.Pytester,
) -> None:
    write_skill()
    pytester.makeini("[pytest]\nupskill_params = seed=1 top_p=0.5\n")

    run_once("--upskill-models", model, "skills")
    run_once("--upskill-models", model, "skills", "--upskill-param", "seed=2")

    sent = [parameters_in(dict(each.body)) for each in loopback.requests]
    assert sent == [{"seed": 1, "top_p": 0.5}] * 2 + [{"seed": 2}] * 2


@pytest.mark.usefixtures("canned_client")
def test_parameters_are_refused_for_a_client_that_sends_none(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()

    result = run_once("--upskill-models=acme:x", "--upskill-param=seed=1", "skills")

    assert only_line(result).startswith(
        "--upskill-param: the client of acme:x sends no parameters: set accepts_parameters = True"
    )


def test_without_parameters_the_request_has_none() -> None:
    assert not Parameters()
    assert parameters_in(chat_body(request_to(parse_model("x@http://h/v1")))) == {}
