"""``pytest-upskill list``: skills with their cases, and what these need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_upskill.commands.main import main
from tests.conftest import WriteSkill


@pytest.fixture(autouse=True)
def _skills(write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_skill()
    monkeypatch.chdir(folder.parents[1])
    Path("skills/broken").mkdir()
    Path("skills/broken/SKILL.md").write_text("nothing", "utf-8")
    text = f"---\nname: long\ndescription: {'word ' * 40}\n---\n# Long\n"
    Path("skills/deep/long").mkdir(parents=True)
    Path("skills/deep/long/SKILL.md").write_text(text, "utf-8")


def test_every_skill_is_listed_with_its_cases(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    pytest.LineMatcher(lines).fnmatch_lines(
        [
            "skills",
            "  billing",
            "    Facts about billing for a test. Use when a test asks.",
            "    1 case in skill_meta.json: 1 by code",
            "  broken",
            "    *SKILL.md:1:1: no frontmatter: *",
            "  long (deep/long)",
            "    word word *...",
            "    no cases: pytest-upskill init skills/deep/long writes the first",
        ],
        consecutive=True,
    )
    assert len(lines[-2]) <= 80


def test_a_misnamed_file_is_named_with_its_right_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("skills/deep/long/skills_meta.json").write_text("{}", "utf-8")
    Path("skills/lower").mkdir()
    Path("skills/lower/skill.md").write_text("---\nname: lower\n---\n", "utf-8")

    assert main(["list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert "    skills_meta.json is not read: rename it to skill_meta.json" in lines
    assert "  skills/lower/skill.md is not read: rename it to SKILL.md" in lines


def test_what_the_cases_of_each_skill_need_is_listed(
    capsys: pytest.CaptureFixture[str], write_skill: WriteSkill
) -> None:
    write_skill(
        {"id": "kind", "input": "Why?", "expected": {"judge": "It is kind."}},
        {"id": "file", "input": "Write it.", "expected": {"file_exists": "a.txt"}},
        name="shipping",
    )

    assert main(["list", "-d", "skills/shipping"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:-1] == [
        "    2 cases in skill_meta.json: 1 by a judge, 1 by an agent",
        "      1 of 2 cases has only statements for a judge: add --upskill-judge MODEL",
    ]
    assert lines[-1].endswith(
        "1 of 2 cases has files or needs commands ('file_exists'): write "
        "an agent before the model, as in loop:MODEL"
    )


def write_cases_elsewhere(skill: str, count: int) -> None:
    folder = Path("evals", skill)
    folder.mkdir(parents=True)
    for number in range(count):
        cases = [{"id": "a", "prompt": "Why?", "expectations": ["It is kind."]}]
        text = json.dumps({"skill_name": skill, "evals": cases})
        (folder / f"{number}-evals.json").write_text(text, "utf-8")


def test_cases_outside_the_folder_of_a_skill_are_listed_too(
    capsys: pytest.CaptureFixture[str], write_skill: WriteSkill
) -> None:
    (write_skill(name="shipping") / "skill_meta.json").unlink()
    write_cases_elsewhere("shipping", 1)

    assert main(["list", "skills/shipping"]) == 0
    output = capsys.readouterr().out
    assert "1 case in ../../evals/shipping/0-evals.json: 1 by a judge" in output
    assert "no cases" not in output

    assert main(["init", "skills/shipping"]) == 0
    output = capsys.readouterr().out
    assert "evals/shipping/0-evals.json: exists, with 1 case: " in output


def test_a_path_through_a_parent_folder_means_the_same(
    capsys: pytest.CaptureFixture[str], write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_skill(name="shipping").absolute()
    monkeypatch.chdir(folder)

    assert main(["list", "../shipping"]) == 0
    assert "1 case in skill_meta.json: 1 by code" in capsys.readouterr().out
    assert main(["init", "../shipping"]) == 0
    assert "skill_meta.json: exists, with 1 case" in capsys.readouterr().out


def test_many_case_files_of_a_skill_are_one_line(
    capsys: pytest.CaptureFixture[str], write_skill: WriteSkill
) -> None:
    (write_skill(name="shipping") / "skill_meta.json").unlink()
    write_cases_elsewhere("shipping", 4)

    assert main(["list", "skills/shipping"]) == 0
    assert "2-evals.json and 1 more: 4 by a judge" in capsys.readouterr().out


def test_another_folder_can_be_listed_with_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "-v", "skills/billing"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["skills/billing", "  billing"]
    assert lines[-2:] == ["    SKILL.md", "    skill_meta.json"]


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("nowhere", "nowhere: no such file or folder: name a skill"),
        ("empty", "empty: no SKILL.md in it: name the folder of a skill"),
    ],
)
def test_a_folder_without_skills_is_refused(
    folder: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()

    assert main(["list", "-d", folder]) == 4
    assert capsys.readouterr().err == f"ERROR: {problem}\n"
