"""The example skills are sound and lift the offline model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_upskill.cases.load import load_skills
from tests import junit
from tests.conftest import Run
from tests.pages import CHECKOUT

EXAMPLES = CHECKOUT / "example_skills"
CASE_FILES = sorted(EXAMPLES.glob("*/skill_meta.json"))
HONEST_ZERO = "changelog-questions"


@pytest.mark.parametrize("case_file", CASE_FILES, ids=lambda path: path.parent.name)
def test_an_example_keeps_to_the_specification(case_file: Path) -> None:
    (skill,) = load_skills(case_file)

    assert skill.warnings == ()
    assert skill.name == case_file.parent.name
    assert 4 <= len(skill.cases) <= 8


@pytest.mark.slow
@pytest.mark.needs("gcc", "g++", "nvcc")
def test_every_example_is_green_on_offline_and_lifts_it_but_for_the_honest_zero(
    pytester: pytest.Pytester, run_once: Run
) -> None:
    shutil.copytree(EXAMPLES, pytester.path / "example_skills")
    options = ("--upskill-models", "offline", "--upskill-require-compilers", "--junitxml", "x.xml")

    result = run_once(*options, "example_skills")

    assert result.ret == pytest.ExitCode.OK
    assert "skipped" not in result.parseoutcomes()
    tests = junit.suite(pytester.path / "x.xml").findall("testcase")
    gates = [junit.properties(test) for test in tests if test.attrib["name"] == "gate[offline]"]
    lifts = {gate["upskill.skill"]: float(gate["upskill.lift"]) for gate in gates}
    assert lifts.keys() == {case_file.parent.name for case_file in CASE_FILES}
    assert lifts.pop(HONEST_ZERO) == 0
    assert all(lift > 0 for lift in lifts.values())
