"""Two skills of one name are told apart by their places."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill

ARGS = ("--upskill-models=offline", "skills", "others", "--upskill-min-lift=0.1")


def test_two_skills_of_one_name_stay_apart_in_every_report(
    write_skill: WriteSkill, run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill()
    others = pytester.path / "others" / "billing"
    shutil.copytree(pytester.path / "skills" / "billing", others)
    (others / "SKILL.md").write_text("---\nname: billing\ndescription: None.\n---\nNothing.\n")
    monkeypatch.setenv("GITHUB_OUTPUT", "outputs")
    formats = ("json", "md", "html")
    files = [f"--upskill-{name}=report.{name}" for name in formats]

    result = run(*ARGS, "--junitxml=junit.xml", *files)

    names = (
        "billing (others/billing/skill_meta.json)",
        "billing (skills/billing/skill_meta.json)",
    )
    assert [line for line in result.outlines if line in names] == [*names]
    result.stdout.fnmatch_lines([f"{names[0]} on offline: lift is under +10 points *"])
    written = (pytester.path / "junit.xml").read_text("utf-8")
    assert all(f'name="upskill.lift" value="{lift}"' in written for lift in ("0", "1"))
    json_, md, html = (Path(f"report.{name}").read_text("utf-8") for name in formats)
    entries = json.loads(json_)["entries"]
    assert [entry["gate"]["cell"]["place"] for entry in entries] == [
        "others/billing/skill_meta.json",
        "skills/billing/skill_meta.json",
    ]
    for page in (md, html):
        assert all(name in page for name in names)
    outputs = Path("outputs").read_text("utf-8").splitlines()
    assert f'failed-gates=["{names[0]} on offline"]' in outputs


def test_two_skills_of_one_folder_name_in_one_evals_file_are_two_cells(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    # Given a file for the skills one/x and two/x, and y, each of which knows its own answer.
    for place in ("one/x", "two/x", "top/y"):
        folder = write_skill(name=place[-1], body=f"The code word is {place[:3]}-37.\n")
        (folder / "skill_meta.json").unlink()
        home = pytester.path / "skills" / place
        home.parent.mkdir()
        folder.rename(home)
    places = [("one/x", 3), ("two/x", 3), ("top/y", 1)]
    cases = [
        {
            "id": f"{place[:3]}-{number}",
            "skill": f"skills/{place}",
            "prompt": f"What is the code word ({number})?",
            "assertions": [{"type": "contains", "value": f"{place[:3]}-37"}],
        }
        for place, count in places
        for number in range(count)
    ]
    (pytester.path / "evals").mkdir()
    (pytester.path / "evals" / "evals.json").write_text(json.dumps(cases), "utf-8")

    # When they run, all of them and one by its node id.
    result = run_once("--upskill-models=offline", "evals", "-v", "--upskill-json=report.json")
    one = run_once(
        "--upskill-models=offline", "evals/evals.json::skills/two/x::two-1[offline-with_skill]"
    )

    # Then each has a gate over its own trials.
    result.assert_outcomes(passed=14 + 3)
    entries = json.loads(Path("report.json").read_text("utf-8"))["entries"]
    assert [
        (entry["gate"]["cell"]["path"], len(entry["gate"]["cell"]["trials"])) for entry in entries
    ] == [
        ("evals/evals.json::skills/one/x", 6),
        ("evals/evals.json::skills/two/x", 6),
        ("evals/evals.json::y", 2),
    ]
    one.assert_outcomes(passed=1, skipped=1)


def test_two_skills_of_one_name_beside_each_other_are_named(
    write_skill: WriteSkill, run_once: Run
) -> None:
    write_skill()
    other = write_skill(name="other")
    (other / "SKILL.md").write_text("---\nname: billing\ndescription: None.\n---\nNothing.\n")

    result = run_once("--upskill-models=offline", "-W", "default", "skills")

    what = "another skill beside it is called 'billing' too, and an agent cannot tell them apart"
    places = "(2 times: skills/billing/SKILL.md, skills/other/SKILL.md)"
    result.stdout.fnmatch_lines([f"*name: {what}: rename one {places}"])
