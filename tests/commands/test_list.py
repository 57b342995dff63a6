"""``pytest-upskill list``: skills with their cases and latest verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.commands.main import main
from tests.conftest import Run, WriteSkill


@pytest.fixture(autouse=True)
def _skills(write_skill: WriteSkill, run_once: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_skill()
    monkeypatch.chdir(folder.parents[1])
    run_once("--upskill-models=offline", "--upskill-log-runs", "skills")
    Path("skills/broken").mkdir()
    Path("skills/broken/SKILL.md").write_text("nothing", "utf-8")
    text = f"---\nname: long\ndescription: {'word ' * 40}\n---\n# Long\n"
    Path("skills/deep/long").mkdir(parents=True)
    Path("skills/deep/long/SKILL.md").write_text(text, "utf-8")


def test_every_skill_is_listed_with_its_cases_and_latest_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()

    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    pytest.LineMatcher(lines).fnmatch_lines(
        [
            "skills",
            "  billing",
            "    Facts about billing for a test. Use when a test asks.",
            "    1 case in skill_meta.json",
            "    offline: too few runs, lift +100 *,+100] on *",
            "  broken",
            "    *SKILL.md:1:1: no frontmatter: *",
            "  long (deep/long)",
            "    word word *...",
            "    no cases: pytest-upskill init skills/deep/long writes the first",
        ],
        consecutive=True,
    )
    assert len(lines[-2]) <= 80


def test_another_folder_can_be_listed_with_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()

    assert main(["list", "-v", "-d", "skills/billing"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["skills/billing", "  billing"]
    assert lines[-2:] == ["    SKILL.md", "    skill_meta.json"]


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("nowhere", "nowhere is not a folder: name one with skills"),
        ("empty", "no skill in empty: a skill is a folder with a SKILL.md; -d names one"),
    ],
)
def test_a_folder_without_skills_is_refused(
    folder: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()

    assert main(["list", "-d", folder]) == 4
    assert capsys.readouterr().err == f"ERROR: {problem}\n"
