"""A few of the hostile answers of ``python -m tests.hostile``."""

from __future__ import annotations

import pytest

from pytest_upskill.checks.compile import Compilers
from pytest_upskill.sandbox.limits import Level
from tests.hostile.answers import answers
from tests.hostile.attempt import attack, tight_limits
from tests.hostile.targets import aims
from tests.sandbox_programs import every_level

SAMPLE = (
    *("steal file", "steal environment of another", "steal TCP", "steal keyring"),
    *("steal shared memory", "harm overwrite", "harm mode", "harm signal", "harm priority"),
    *("deceive by exit later", "bomb of sort", "parse nothing", "c include in a type"),
)


def test_there_are_as_many_hostile_answers_as_the_page_says() -> None:
    with aims() as targets:
        assert len(list(answers(targets, ["c", "cpp", "cuda"]))) >= 150


@pytest.mark.needs("gcc")
@every_level
def test_a_hostile_answer_gets_nothing_where_the_level_says_so(level: Level) -> None:
    compilers = Compilers(level)
    with aims() as targets, tight_limits():
        every = [each for each in answers(targets, ["c"]) if each.name in SAMPLE]
        found = [attack(compilers, each, targets) for each in every]

    assert len(found) == len(SAMPLE)
    assert [each.answer.name for each in found if each.wrong] == []
    damage = [each.answer.name for each in found if each.stolen or each.harmed]
    assert bool(damage) is (level == "limits")
