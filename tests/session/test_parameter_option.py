"""``--upskill-param`` in a run: what is sent, reported, replayed and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.models import parse_model
from pytest_upskill.project.redaction import Redactor
from pytest_upskill.session.chosen_models import refuse_secrets, with_parameters
from tests.conftest import Run, recordings
from tests.loopback import Loopback, Reply
from tests.models.parameters import parameters_in
from tests.session.refused import only_line

pytestmark = pytest.mark.usefixtures("skill")


def test_the_name_of_the_limit_is_remembered_for_the_session(
    run_once: Run, loopback: Loopback, model: str
) -> None:
    know = loopback.answer

    def azure(received: Any) -> Any:
        if "max_tokens" in received.body:
            return Reply(status=400, text="Use 'max_completion_tokens' instead of 'max_tokens'.")
        return know(received)

    loopback.answer = azure
    result = run_once("--upskill-models", model, "--upskill-runs=5", "--upskill-concurrency=1")

    result.assert_outcomes(passed=3)
    assert len(loopback.requests) == 11


def test_a_run_sends_reports_and_replays_its_parameters(
    run_once: Run, loopback: Loopback, model: str
) -> None:
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
    assert "1 for cold, as further runs would be copies" in " ".join(result.stdout.str().split())
    report = json.loads(Path("report.json").read_text("utf-8"))
    assert report["sessions"][0]["options"]["params"] == [
        "m:top_p=0.9",
        "m:seed=5",
        "cold:temperature=0",
        "cold:top_p=0.9",
    ]
    for name in ("report.md", "junit.xml"):
        assert "top_p=0.9 seed=5" in Path(name).read_text("utf-8"), name
    assert len(recordings()) == asked == 6
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
    run_once: Run, model: str, entry: str, problem: str
) -> None:
    result = run_once("--upskill-models", f"{model},offline", "--upskill-param", entry)

    assert only_line(result).startswith(problem)


def test_a_parameter_with_a_known_key_is_refused_without_showing_it() -> None:
    entry = 'm:body.metadata={"api_key": "sk-planted-1"}'

    with pytest.raises(pytest.UsageError) as caught:
        refuse_secrets(["seed=1", entry], Redactor(["sk-planted-1"]))

    assert str(caught.value).startswith("--upskill-param: m:body.metadata contains a key ")
    assert "sk-planted-1" not in str(caught.value)


def test_a_judge_has_its_own_parameters() -> None:
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
    run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 20)

    result = run_once("--upskill-models=haiku", "--upskill-param=temperature=0", "skills")

    assert only_line(result) == (
        "--upskill-param: the host of haiku refuses temperature: write LABEL:temperature=... for "
        "each of the other models"
    )


def test_parameters_in_the_ini_file_hold_unless_the_command_line_has_any(
    run_once: Run, loopback: Loopback, model: str, pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nupskill_params = seed=1 top_p=0.5\n")

    run_once("--upskill-models", model, "skills")
    run_once("--upskill-models", model, "skills", "--upskill-param", "seed=2")

    sent = [parameters_in(dict(each.body)) for each in loopback.requests]
    assert sent == [{"seed": 1, "top_p": 0.5}] * 2 + [{"seed": 2}] * 2


@pytest.mark.usefixtures("canned_client")
def test_parameters_are_refused_for_a_client_that_sends_none(run_once: Run) -> None:
    result = run_once("--upskill-models=acme:x", "--upskill-param=seed=1", "skills")

    assert only_line(result).startswith(
        "--upskill-param: the client of acme:x sends no parameters: set accepts_parameters = True"
    )
