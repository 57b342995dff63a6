"""Clients that plugins bring, and what they do wrong."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import Run, WriteSkill

CLIENT = """
    import asyncio
    import pytest
    from pytest_upskill.models import Completion, ProviderError

    class Parrot:
        def __init__(self, name):
            self.name = name

        async def complete(self, request):
            if self.name == "mute":
                raise ProviderError("parrot: it does not speak")
            if self.name == "asleep":
                await asyncio.sleep(60)
            if self.name == "clumsy":
                raise ValueError("a bug\\nin two lines")
            if self.name == "failing":
                pytest.fail("no voice")
            if self.name == "terse":
                return "37"
            if self.name == "careless":
                return Completion(text=37, input_tokens=5, output_tokens=1)
            text = "37" if request.skill else "polly"
            if self.name == "torn":
                text += "\\ud83d"
            return Completion(
                text=text, input_tokens=5, output_tokens=1, served_model=f"parrot-{self.name}"
            )

        async def aclose(self):
            if self.name == "clinging":
                raise ValueError("it stays")
            with open("closed.txt", "a") as file:
                print("closed", file=file)

    def pytest_upskill_make_client(model, config):
        assert config.rootpath
        if model.name == "keyless":
            return {}["PARROT_KEY"]
        if model.name == "stuffed":
            return object()
        if model.name == "absent":
            pytest.skip("it flew away")
        if model.provider == "parrot":
            return Parrot(model.name)
"""


@pytest.fixture(autouse=True)
def _project(pytester: pytest.Pytester, write_skill: WriteSkill) -> None:
    pytester.makeconftest(CLIENT)
    write_skill()


def test_a_plugins_client_answers_for_its_models_alone(run: Run) -> None:
    result = run("--upskill-models", "parrot:grey,offline", "-v", "skills")

    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(
        ["upskill: grey (parrot:grey), offline (*); runs: 1", "  grey* 0->100% * 6->6 x1.00"]
    )


def test_lone_surrogates_in_an_answer_of_a_client_are_replaced(run: Run) -> None:
    result = run("--upskill-models", "parrot:torn", "--upskill-json", "report.json", "skills")

    result.assert_outcomes(passed=3)
    report = json.loads(Path("report.json").read_text("utf-8"))
    texts = {
        run["completion"]["text"]
        for trial in report["entries"][0]["gate"]["cell"]["trials"]
        for run in trial["runs"]
    }
    assert texts == {"37?", "polly?"}


def test_a_client_is_made_once_for_a_model_and_closed_at_the_end(run: Run) -> None:
    run("--upskill-models", "parrot:grey,parrot:green", "--upskill-runs", "3", "skills")

    assert Path("closed.txt").read_text() == "closed\n" * 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mute", "parrot: it does not speak"),
        (
            "clumsy",
            "parrot:clumsy: its client's complete() raised ValueError: a bug *(conftest.py:15)",
        ),
        ("failing", "parrot:failing: its client's complete() raised Failed: no voice*"),
        ("terse", "parrot:terse: its client's complete() returned str: return a Completion"),
        (
            "careless",
            "parrot:careless: its client's complete() returned a Completion with text=37: *string",
        ),
    ],
)
def test_what_a_client_does_wrong_is_an_error_of_the_trial_in_one_line(
    run_once: Run, name: str, said: str
) -> None:
    result = run_once("--upskill-models", f"parrot:{name}", "skills")

    assert result.ret == NOT_MEASURED
    assert result.parseoutcomes()["errors"] >= 1
    (line,) = (line for line in result.outlines if line.startswith("parrot:"))
    assert fnmatchcase(line, said)
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_client_that_does_not_close_is_reported_in_one_line_and_changes_nothing(run: Run) -> None:
    result = run("--upskill-models", "parrot:clinging,parrot:grey", "skills")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=6)
    assert result.outlines[-1] == (
        "upskill: parrot:clinging: its client's aclose() raised ValueError: it stays "
        "(conftest.py:31): no answer is lost"
    )
    assert Path("closed.txt").read_text() == "closed\n"
    result.stderr.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("keyless", "raised KeyError: 'PARROT_KEY' (conftest.py:38): fix the plugin"),
        ("stuffed", "returned object: return a client, with complete and aclose, or None"),
        ("absent", "raised Skipped: it flew away (conftest.py:42): fix the plugin"),
    ],
)
def test_a_broken_hook_is_refused_in_one_line(run_once: Run, name: str, problem: str) -> None:
    result = run_once("--upskill-models", f"parrot:{name}", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        f"ERROR: parrot:{name}: the hook pytest_upskill_make_client {problem}"
    ]
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_client_that_does_not_answer_in_time_is_missing_data(run_once: Run) -> None:
    result = run_once("--upskill-models", "parrot:asleep", "--upskill-timeout=1", "skills")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        ["asleep: no reply from parrot:asleep within 1 s: raise --upskill-timeout, *"]
    )
