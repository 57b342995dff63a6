"""To which case file a baseline belongs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import QUESTION, Run, WriteSkill
from tests.figures.conftest import BASELINES, COMPARE, GOOD, LENIENT, UPDATE
from tests.scripted_model import Script


@pytest.mark.usefixtures("recorded")
def test_a_skill_with_another_name_in_the_same_place_has_its_baseline_still(
    script: Script, run_once: Run
) -> None:
    args = script(**GOOD)
    text = Path("skills", "csv", "SKILL.md")
    text.write_text(text.read_text("utf-8").replace("name: csv", "name: sheets"), "utf-8")

    result = run_once(*args, COMPARE, LENIENT, "-W", "ignore")

    result.stdout.fnmatch_lines(
        ["sheets on haiku: +0 points * (19/20 with the skill, baseline 19/20*)"]
    )


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
    why = "nothing was compared with the baseline: csv on haiku: no baseline: *"
    compared.stdout.fnmatch_lines([f"exit code 75: {why}"])
    own = pytester.path.joinpath(BASELINES, "others", "csv", "skill_meta.json", "haiku.json")
    updated.stdout.fnmatch_lines([f"baseline of csv on haiku: {own} written (*), commit it"])
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
    files = ("evals/evals.json", "skill_meta.json")
    both = [f"billing (skills/billing/{file}) on offline" for file in files]
    line = f"{', '.join(both)}: +0 points against the baseline, not worse (1/1 with the skill, "
    line += "baseline 1/1)"
    assert line in compared.outlines
