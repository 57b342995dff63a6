"""To which skill and case file a baseline belongs.

Also where the skill was moved or renamed, and where the file has the former format.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_upskill.cells.gate import NOT_MEASURED
from tests.cells.conftest import BASELINES, COMPARE, GOOD, LENIENT, UPDATE
from tests.conftest import QUESTION, Run, WriteSkill
from tests.scripted_model import Script


@pytest.mark.parametrize("option", [COMPARE, UPDATE])
def test_a_baseline_whose_cases_are_gone_is_named_and_one_that_did_not_run_is_not(
    script: Script, run_once: Run, recorded: Path, pytester: pytest.Pytester, option: str
) -> None:
    args = script(**GOOD)
    shutil.copytree("skills/csv", "skills/xml")
    for name in ("sql", "xml"):
        copy_baseline(recorded, name, '"skill": "csv"', f'"skill": "{name}"')

    result = run_once("skills/csv", *args[1:], option, LENIENT)

    assert result.ret == pytest.ExitCode.OK
    gone = [line for line in result.outlines if "is gone" in line]
    orphan = pytester.path.joinpath(BASELINES, "skills", "sql", "skill_meta.json", "haiku.json")
    assert gone == [
        f"sql on haiku: skills/sql/skill_meta.json is gone: delete the baseline, {orphan}"
    ]


def copy_baseline(recorded: Path, name: str, old: str, new: str) -> None:
    """Write a baseline again, with one change, as that of the skill in another folder."""
    file = recorded.parents[2] / name / "skill_meta.json" / recorded.name
    file.parent.mkdir(parents=True)
    file.write_text(recorded.read_text("utf-8").replace(old, new), "utf-8")


@pytest.mark.usefixtures("recorded")
def test_a_skill_with_another_name_in_the_same_place_has_its_baseline_still(
    script: Script, run_once: Run
) -> None:
    args = script(**GOOD)
    text = Path("skills", "csv", "SKILL.md")
    text.write_text(text.read_text("utf-8").replace("name: csv", "name: sheets"), "utf-8")

    result = run_once(*args, COMPARE, LENIENT, "-W", "ignore")

    result.stdout.fnmatch_lines(["sheets on haiku: 19/20 with the skill, baseline 19/20, p = *"])


@pytest.mark.usefixtures("recorded")
def test_a_skill_that_moved_has_its_baseline_still(
    script: Script, run_once: Run, pytester: pytest.Pytester
) -> None:
    args = script(**GOOD)
    (pytester.path / "skills" / "csv").rename(pytester.path / "skills" / "tables")

    result = run_once(*args, COMPARE, LENIENT, "-W", "ignore")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["csv on haiku: 19/20 with the skill, baseline 19/20, p = *"])
    result.stdout.no_fnmatch_line("*is gone*")


@pytest.mark.usefixtures("recorded")
def test_a_baseline_is_not_used_where_either_of_two_skills_could_have_moved(
    script: Script, run_once: Run, pytester: pytest.Pytester
) -> None:
    args = script(one="---------- ----------", two="---------- ----------")
    twice = (*args, COMPARE, LENIENT, "-W", "ignore", "--upskill-runs=5")
    shutil.copytree("skills/csv", "skills/b/csv")
    (pytester.path / "skills" / "csv").rename(pytester.path / "skills" / "a")

    result = run_once(*twice)

    for place in ("a", "b/csv"):
        result.stdout.fnmatch_lines([f"csv (skills/{place}) on haiku: no baseline: *"])


@pytest.mark.usefixtures("recorded")
def test_a_skill_of_the_same_name_elsewhere_neither_uses_nor_overwrites_a_baseline(
    script: Script, run_once: Run, recorded: Path, pytester: pytest.Pytester
) -> None:
    before = recorded.read_text("utf-8")
    args = script(one="---------- ----------", two="---------- ----------")
    shutil.copytree("skills", "others")

    compared = run_once("others", *args[1:], COMPARE, LENIENT)
    script(one="---------- ----------", two="---------- ----------")
    updated = run_once("others", *args[1:], UPDATE, LENIENT)

    assert compared.ret == NOT_MEASURED
    compared.stdout.fnmatch_lines(["csv on haiku: no baseline: *"])
    own = pytester.path.joinpath(BASELINES, "others", "csv", "skill_meta.json", "haiku.json")
    updated.stdout.fnmatch_lines([f"baseline of csv on haiku: {own} written, commit it"])
    assert recorded.read_text("utf-8") == before


def test_each_case_file_of_a_skill_has_its_own_baseline(
    write_skill: WriteSkill, run_once: Run, pytester: pytest.Pytester
) -> None:
    evals = write_skill() / "evals" / "evals.json"
    evals.parent.mkdir()
    case = {"prompt": QUESTION, "assertions": [{"type": "contains", "value": "37"}]}
    evals.write_text(json.dumps([case]), "utf-8")
    args = ("skills", "--upskill-models=offline")

    updated = run_once(*args, UPDATE)
    compared = run_once(*args, COMPARE)

    written = pytester.path.joinpath(BASELINES, "skills", "billing")
    assert {str(file.relative_to(written)) for file in written.rglob("offline.json")} == {
        "evals/evals.json/offline.json",
        "skill_meta.json/offline.json",
    }
    assert updated.ret == compared.ret == pytest.ExitCode.OK
    assert compared.stdout.str().count("1/1 with the skill, baseline 1/1") == 2


@pytest.fixture
def former(recorded: Path, pytester: pytest.Pytester) -> Path:
    """Write a baseline as format 1 did, named after the skill."""
    file = pytester.path.joinpath(BASELINES, "csv", "haiku.json")
    file.parent.mkdir()
    head = '"format": 1,\n "path": "skills/csv/skill_meta.json",'
    file.write_text(recorded.read_text("utf-8").replace('"format": 2,', head), "utf-8")
    recorded.unlink()
    return file


def test_a_file_of_the_former_format_is_used_by_its_case_file_until_it_is_replaced(
    script: Script, run_once: Run, former: Path, file: Path
) -> None:
    text = former.read_text("utf-8")
    args = script(**GOOD)

    used = run_once(*args, COMPARE, LENIENT)
    script(**GOOD)
    updated = run_once(*args, UPDATE, LENIENT)
    script(**GOOD)
    replaced = run_once(*args, COMPARE, LENIENT)

    used.stdout.fnmatch_lines(["csv on haiku: 19/20 with the skill, baseline 19/20, p = *"])
    updated.stdout.fnmatch_lines([f"baseline of csv on haiku: {file} written, commit it"])
    replaced.stdout.fnmatch_lines(
        [f"csv on haiku: {file} replaces it: delete the baseline, {former}"]
    )
    assert former.read_text("utf-8") == text


def test_a_file_of_the_former_format_of_another_case_file_is_left_alone(
    script: Script, run_once: Run, former: Path
) -> None:
    shutil.copytree("skills", "others")
    args = script(one="---------- ----------", two="---------- ----------")
    former.write_text(former.read_text("utf-8").replace("skills/csv", "others/csv"), "utf-8")

    result = run_once(*args, COMPARE, LENIENT)

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(["csv on haiku: no baseline: *"])


def test_a_case_that_the_former_format_cannot_tell_from_another_is_explained(
    script: Script, run_once: Run, former: Path
) -> None:
    digest = json.loads(former.read_text("utf-8"))["cases"][0]["grader"]
    text = former.read_text("utf-8").replace(digest, "another-grader", 1)
    former.write_text(text, "utf-8")

    result = run_once(*script(**GOOD), COMPARE, LENIENT)

    result.stdout.fnmatch_lines(
        [
            "csv on haiku: not compared, changed since the baseline: one",
            "csv on haiku: the baseline has format 1, in which 0, false, null and*",
        ]
    )
