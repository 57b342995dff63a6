"""A real language model that knows a fact only with the skill: rates are asserted, not texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, WriteSkill, recordings
from tests.loopback import Received
from tests.shipped.small_model import SmallModel
from tests.teaching import HEAD, Depot, case

pytestmark = [pytest.mark.slow, pytest.mark.needs("smollm2")]

HARBOR = """\
The gate code of the harbor is 7294.
The captain of the harbor is called Marlow.
"""
# A small model may miss a run, at a temperature above 0.
CASES = (
    {
        "id": "code",
        "input": "What is the gate code of the harbor?",
        "expected": {"contains": "7294"},
        "min_pass_rate": 0.5,
    },
    {
        "id": "captain",
        "input": "What is the captain of the harbor called?",
        "expected": {"contains": "Marlow"},
        "min_pass_rate": 0.5,
    },
)
PARAMETERS = ("--upskill-param=temperature=0.3", "--upskill-param=max_tokens=32")
Harbor = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def server() -> Iterator[SmallModel]:
    model = SmallModel()
    yield model
    model.stop()


@pytest.fixture
def harbor(run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester) -> Harbor:
    """Run a skill on a model; return the figures of its report, all of it green."""
    write_skill(*CASES, name="harbor", body=HARBOR)

    def run(model: str, *args: str) -> dict[str, Any]:
        result = run_once("--upskill-models", model, "--upskill-json=r.json", *PARAMETERS, *args)
        assert result.ret == 0
        (entry,) = json.loads(Path(pytester.path, "r.json").read_text("utf-8"))["entries"]
        runs = [run for trial in entry["gate"]["cell"]["trials"] for run in trial["runs"]]
        attempts = sum(run["completion"]["attempts"] for run in runs)
        return {**entry["figures"], "attempts": attempts}

    return run


def assert_helped(figures: dict[str, Any]) -> None:
    assert figures["pass_rate.with"] >= 0.6
    assert figures["pass_rate.without"] == 0
    assert figures["missing"] == 0


def test_a_skill_helps_a_real_model_and_a_replay_has_the_same_figures(
    server: SmallModel, harbor: Harbor
) -> None:
    args = (f"m=smollm2@{server.url}/v1", "--upskill-runs=2", "--upskill-param=seed=1")

    live = harbor(*args)
    asked = recordings()
    replayed = harbor(*args, "--upskill-cache=replay")

    assert_helped(live)
    assert replayed == live
    assert len(asked) == 8


def test_a_skill_helps_a_real_model_in_anthropics_format(
    server: SmallModel, harbor: Harbor
) -> None:
    assert_helped(harbor(f"m=anthropic:smollm2@{server.url}", "--upskill-runs=2"))


def test_early_stop_asks_a_real_model_for_no_more_than_the_verdict_needs(
    server: SmallModel, harbor: Harbor
) -> None:
    args = (f"m=smollm2@{server.url}/v1", "--upskill-runs=10", "--upskill-early-stop")

    # Ends after a sentence or line: answers that are cut could still change the verdict.
    figures = harbor(*args, '--upskill-param=stop=[".", "\\n"]', "--upskill-param=seed=1")

    assert_helped(figures)
    assert figures["verdict"] == "helps"
    assert 8 <= len(recordings()) < 40


def test_a_server_that_restarts_in_the_middle_of_a_run_loses_no_answer(
    server: SmallModel, harbor: Harbor
) -> None:
    restart = server.restart_when(recordings)

    figures = harbor(f"llamacpp:smollm2@{server.url}/v1", "--upskill-runs=2")
    restart.join()

    assert_helped(figures)
    assert figures["attempts"] > 8


def test_cases_are_proposed_for_a_real_student_that_knows_one_of_them_already(
    server: SmallModel, depot: Depot
) -> None:
    depot.write([case(0)], f"{HEAD}{HARBOR}")
    asked = [str(case["input"]) for case in CASES] + ["What is the capital of France?"]
    answers = ["7294", "Marlow", "Paris"]

    def teach(received: Received) -> str:
        if "Propose" not in received.user:
            # Its own answer, given the source.
            return next(a for q, a in zip(asked, answers, strict=True) if q in received.user)
        proposals = [
            {
                "id": answer.lower(),
                "input": question,
                "expected": {"contains": answer},
                "reference": answer,
                "alternatives": [f"It is {answer}.", f"{answer}!"],
                "wrong": ["I forgot."],
            }
            for question, answer in zip(asked, answers, strict=True)
        ]
        first = asked[0] not in received.user.partition("There are these questions")[2]
        return json.dumps({"proposals": proposals if first else []})

    depot.loopback.answer = teach
    student = f"--eval-model=s=openai:smollm2@{server.url}/v1"
    # The seed: without it, the student now and then does not know what it knows.
    parameters = ("--param=temperature=0.3", "--param=max_tokens=16", "--param=seed=1")

    assert depot.run("cases", str(depot.skill), student, *parameters) == 0

    decision = depot.decision()
    assert decision["kept"] == ["7294", "marlow"]
    assert decision["dropped"]["paris"] == "every student passes every time without the skill"
