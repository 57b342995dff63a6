"""To which skill and case file a baseline belongs.

Also where the skill was moved or renamed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_upskill.figures.gate import NOT_MEASURED
from tests.conftest import QUESTION, Run, WriteSkill
from tests.figures.conftest import BASELINES, COMPARE, GOOD, LENIENT, UPDATE
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
