"""The case file of a skill that ``refine`` and ``cases`` use, and those that ``list`` names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_upskill.checks.extensions import NO_EXTENSIONS
from pytest_upskill.commands.command import load_skill, own_cases
from tests.conftest import WriteSkill


@pytest.fixture
def folder(write_skill: WriteSkill) -> Path:
    folder = write_skill().absolute()
    (folder / "skill_meta.json").unlink()
    return folder


def write_evals(file: Path, question: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    evals = {"evals": [{"id": 1, "prompt": question, "expectations": ["It says 42."]}]}
    file.write_text(json.dumps(evals), "utf-8")


def question_of(folder: Path) -> str:
    (case,) = load_skill(folder, NO_EXTENSIONS).cases
    return case.input


@pytest.mark.parametrize("file", ["evals/evals.json", "evals/basic-evals.json", "test/evals.json"])
def test_the_commands_with_a_teacher_find_the_case_files_that_pytest_runs(
    folder: Path, file: str
) -> None:
    write_evals(folder / file, "What is it?")

    assert question_of(folder) == "What is it?"


def test_of_several_case_files_our_own_is_used_else_the_first(folder: Path) -> None:
    write_evals(folder / "evals" / "basic-evals.json", "first?")
    write_evals(folder / "tests" / "evals.json", "second?")
    assert question_of(folder) == "first?"

    cases = {"cases": [{"input": "ours?", "expected": {"contains": "x"}}]}
    (folder / "skill_meta.json").write_text(json.dumps(cases), "utf-8")
    assert question_of(folder) == "ours?"


def test_the_cases_of_a_skill_inside_another_are_not_those_of_the_outer_one(
    folder: Path,
) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "SKILL.md").write_text("---\nname: inner\ndescription: Inner.\n---\nText\n", "utf-8")
    write_evals(inner / "evals" / "evals.json", "of the inner skill?")

    assert load_skill(folder, NO_EXTENSIONS).cases == ()
    assert own_cases(folder) == ([], [])


def test_a_linked_folder_of_cases_is_read(folder: Path, tmp_path: Path) -> None:
    write_evals(tmp_path / "shared" / "evals.json", "linked?")
    (folder / "evals").symlink_to(tmp_path / "shared")

    assert question_of(folder) == "linked?"
    ((skill,), problems) = own_cases(folder)
    assert (skill.cases[0].input, problems) == ("linked?", [])
