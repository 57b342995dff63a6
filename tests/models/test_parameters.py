"""How parameters of requests are written, and which are refused."""

from __future__ import annotations

import pytest

from pytest_upskill.models.parameters import ParameterError, read_parameters
from pytest_upskill.trials.trial import run_count
from tests.models.parameters import parametrized


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
        ("temperature=3", "the value should be "),
        ("temperature=nan", "the value should be "),
        ("temperature=hot", "the value should be a valid number"),
        ("top_p=0", "the value should be greater than 0"),
        ("seed=-1", "the value should be greater"),
        ("seed=1.5", "the value should be a"),
        ("effort=extreme", "the value should be 'none', 'minimal', "),
        ('stop=["END"', "Invalid JSON"),
        ("stop=[]", "should have at least 1 item"),
        ("max_tokens=0", "the value should be greater than or equal to 1"),
        ("body.top_k=NaN", "'NaN' is not JSON"),
        ("body.mode=fast", "'fast' is not JSON: a text needs quotes, '\"fast\"'"),
        ("body.messages=[]", "'messages' cannot be set: it is measured, or has its own parameter"),
        ("body.max_completion_tokens=9", "cannot be set"),
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


@pytest.mark.parametrize(
    ("entry", "runs"), [("temperature=0", 1), ('stop=["a temperature=0 b"]', 3), ("top_p=1", 3)]
)
def test_further_runs_repeat_the_first_only_at_temperature_0(entry: str, runs: int) -> None:
    assert run_count(parametrized("x@http://h/v1", entry), 3) == runs
