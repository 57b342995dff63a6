"""``pytest-upskill refine --description``: a description is proved on held-out queries."""

from __future__ import annotations

import json

import pytest

from pytest_upskill.cases.skill import Case
from pytest_upskill.report.history.runs import read_history
from pytest_upskill.teacher.acceptance import is_held_out
from tests.conftest import recordings
from tests.loopback import Received, Reply
from tests.teaching import SKILL, Depot
from tests.trials.choosing import calling, took

pytestmark = pytest.mark.slow

QUERIES = [f"Which code has gate {number} of Quarn?" for number in range(24)]
OTHERS = [f"How do I paint gate {number} of Quarn?" for number in range(24)]
WHEN = "Codes of the Quarn depot. Use when a code of a gate or bay is asked for."
VAGUE = SKILL.replace("Codes of the Quarn depot. Use for questions about bays.", "Depot.")


def held_out(query: str) -> bool:
    return is_held_out(Case(id="", input=query, checks=()))


@pytest.fixture
def choosing(depot: Depot) -> Depot:
    """A depot whose skill has a vague description, and an agent that goes by its words."""
    queries = [{"input": each, "should_trigger": True} for each in QUERIES]
    queries += [{"input": each, "should_trigger": False} for each in OTHERS]
    depot.write(queries, VAGUE)

    def reply(received: Received) -> Reply | str:
        if received.body["model"] == depot.teacher:
            depot.teacher_requests.append(received)
            return depot.teach(received, len(depot.teacher_requests))
        chosen = "code" in received.user and "Use when a code" in received.system
        if chosen or "Load the skill greeting" in received.user:
            return took("greeting" if "greeting" in received.user else "codes")
        return "I would do it."

    depot.loopback.answer = reply
    return depot


def test_a_description_that_says_when_is_accepted_and_nothing_else_changes(
    choosing: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    choosing.teach = lambda _, __: json.dumps({"description": WHEN})

    assert choosing.refine("--description", "--apply") == 0

    assert choosing.text == VAGUE.replace("description: Depot.", f'description: "{WHEN}"')
    decision = choosing.decision()
    assert decision["decision"] == "accepted"
    assert decision["figures"]["s"]["before"] == pytest.approx(
        sum(map(held_out, OTHERS)) / sum(map(held_out, QUERIES + OTHERS)), abs=0.01
    )
    assert decision["figures"]["s"]["after"] == 1
    (asked,) = choosing.teacher_requests
    assert not [query for query in QUERIES + OTHERS if held_out(query) and query in asked.user]
    assert "(it is for this skill)" in asked.user
    assert "was answered rightly" in asked.user
    said = capsys.readouterr().err
    assert "right choices: 100% on s, " in said
    assert "cases get" not in said
    (series,) = read_history(choosing.folder / ".upskill" / "runs").series
    assert series.last.chooses
    assert (series.title, series.last.number("trigger.recall")) == ("codes", 1)


def test_a_description_that_changes_nothing_is_not_accepted(choosing: Depot) -> None:
    choosing.teach = lambda _, step: json.dumps({"description": f"Depot, variant {step}."})

    assert choosing.refine("--description", "--apply", "--steps=2") == 1

    assert choosing.text == VAGUE


def test_pruning_leaves_every_step_of_a_choice_to_the_session(choosing: Depot) -> None:
    answer = choosing.loopback.answer

    def looks_around_first(received: Received) -> Reply | str:
        first = received.body["messages"][-1]["role"] == "user"
        if first and "of Quarn?" in received.user and received.body["model"] == "student":
            return calling("ls", {})
        return answer(received) if first else "I would do it."

    choosing.loopback.answer = looks_around_first
    assert choosing.refine("--description", "--steps=1") == 1

    (names,) = (choosing.folder / ".upskill" / "drafts").glob("*/answers.txt")
    later = [file for file in recordings() if '"turns"' in file.read_text("utf-8")]
    assert later
    assert {f"{file.parent.name}{file.stem}" for file in later} <= set(names.read_text().split())


def test_a_skill_without_a_query_is_refused_with_the_cure(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert depot.refine("--description") == 4

    said = capsys.readouterr().err
    assert ": does not say which skill should be chosen\n" in said
    assert (
        "refused: only 0 of 0 cases are held out, not 8: add about 20, or let 'pytest-upskill "
        "cases' propose some\n"
    ) in said
    assert depot.loopback.requests == []
