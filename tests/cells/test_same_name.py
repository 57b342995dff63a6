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

    one, other = names = ("billing (others/billing)", "billing (skills/billing)")
    assert [line for line in result.outlines if line in names] == [*names]
    result.stdout.fnmatch_lines([f"{one} on offline: lift is under +10 points *"])
    written = (pytester.path / "junit.xml").read_text("utf-8")
    assert f'name="upskill.lift[{one}-offline]" value="0.0000"' in written
    assert f'name="upskill.lift[{other}-offline]" value="1.0000"' in written
    json_, md, html = (Path(f"report.{name}").read_text("utf-8") for name in formats)
    entries = json.loads(json_)["entries"]
    assert [entry["cell"]["place"] for entry in entries] == ["others/billing", "skills/billing"]
    for page in (md, html):
        assert all(name in page for name in names)
    outputs = Path("outputs").read_text("utf-8").splitlines()
    assert f'failed-gates=["{one} on offline"]' in outputs


def test_a_name_that_only_one_skill_has_stands_alone(
    write_skill: WriteSkill, run_once: Run
) -> None:
    write_skill()
    write_skill(name="shipping")

    result = run_once("--upskill-models=offline", "skills")

    assert {"billing", "shipping"} <= set(result.outlines)
