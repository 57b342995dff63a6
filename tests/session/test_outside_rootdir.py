"""Case files outside the rootdir, whose node ids are neither paths nor unique."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill

OFFLINE = "--upskill-models=offline"


def case(fact: str) -> dict[str, object]:
    return {"id": "budget", "input": "What is the retry budget?", "expected": {"contains": fact}}


def test_skills_of_one_node_id_are_graded_by_their_own_cases_and_answers(
    run: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    # Given two folders with a skill of the same name each, and a rootdir beside them.
    for folder, fact in (("one", "37"), ("other", "99")):
        write_skill(case(fact), body=f"The retry budget is {fact}.\n")
        (pytester.path / "skills").rename(pytester.path / folder)
    pytester.mkdir("root")

    result = run(OFFLINE, "--rootdir=root", "one", "other", "--upskill-json=report.json")

    # Then the node ids are the same, and the cells are not.
    result.assert_outcomes(passed=4 + 2)
    cells = [
        e["gate"]["cell"] for e in json.loads(Path("report.json").read_text("utf-8"))["entries"]
    ]
    assert [(cell["path"], len(cell["trials"])) for cell in cells] == [
        ("../one/billing/skill_meta.json", 2),
        ("../other/billing/skill_meta.json", 2),
    ]
    result.stdout.fnmatch_lines(
        [f"billing (../{folder}/billing/skill_meta.json)" for folder in ("one", "other")]
    )


def test_a_baseline_belongs_to_the_case_file_from_whichever_rootdir_it_is_written(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill()
    pytester.mkdir(".git")
    pytester.mkdir("ci").joinpath("pytest.ini").write_text("[pytest]\n")

    written = run_once(OFFLINE, "-c", "ci/pytest.ini", "skills", "--upskill-baseline-update")
    compared = run_once(OFFLINE, "--rootdir=.", "skills", "--upskill-compare=baseline")

    place = Path(".upskill/baselines/skills/billing/skill_meta.json/offline.json")
    assert [file for file in Path().rglob("offline.json") if file.is_file()] == [place]
    for result in (written, compared):
        result.assert_outcomes(passed=3)


def test_a_project_is_the_repository_of_the_skills_where_the_rootdir_is_above_it(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As if an existing file after an option had made the folder above the rootdir.
    write_skill()
    repository = pytester.mkdir("repository")
    (repository / ".git").mkdir()
    (pytester.path / "skills").rename(repository / "skills")

    written = run_once(OFFLINE, "--rootdir=.", "repository/skills", "--upskill-baseline-update")
    monkeypatch.chdir(repository)
    compared = run_once(OFFLINE, "skills", "--upskill-compare=baseline")

    assert not (pytester.path / ".upskill").exists()
    for result in (written, compared):
        result.assert_outcomes(passed=3)
