"""``pytest-upskill init``: a first case file, without a model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.commands.main import main
from tests.conftest import Run

BODY = """# Sensor frames

## The magic byte

A frame of our sensors starts with the magic byte `0x5A`; `Frame` is its type.

## Rare flags

Only `--cold-start` and `--raw=yes` are known.

## Python code for a task

```python
x = 1
```
"""


@pytest.fixture
def skill(pytester: pytest.Pytester) -> Path:
    """A skill without cases."""
    folder = pytester.mkdir("skills") / "sensors"
    folder.mkdir()
    text = f"---\nname: sensors\ndescription: Facts for a test.\n---\n\n{BODY}"
    (folder / "SKILL.md").write_text(text, "utf-8")
    return folder


def read(folder: Path) -> Any:
    return json.loads((folder / "skill_meta.json").read_text("utf-8"))


def test_the_first_cases_explain_themselves_and_do_not_run_as_they_are(
    skill: Path, run_once: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(skill)]) == 0

    assert f"pytest --upskill-models offline {skill}" in capsys.readouterr().out
    written = read(skill)
    assert [case.get("expected") for case in written["cases"]] == [
        {"contains": ["Replace this with a text that every right answer has"]},
        None,
    ]
    assert written["cases"][-1]["should_trigger"] is False
    assert all(case["$comment"] for case in written["cases"])
    result = run_once("--upskill-models=offline", "--upskill-md=r.md", "skills")
    assert (result.ret, result.parseoutcomes()["errors"]) == (1, 2)
    page = Path("r.md").read_text("utf-8")
    assert "1 file cannot be used" in page
    assert "skills/sensors/skill_meta.json:11:5: " in page
    assert "other tests" not in page


def test_a_skill_with_cases_is_left_as_it_is(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evals = [{"prompt": "What is the magic byte?", "expectations": ["It is polite"]}]
    (skill / "evals.json").write_text(json.dumps(evals), "utf-8")

    assert main(["init", str(skill)]) == 0

    needs = "pytest-upskill list says what they need"
    said = capsys.readouterr().out
    assert said == f"{skill / 'evals.json'}: exists, with 1 case: {needs}\n"
    assert not (skill / "skill_meta.json").exists()


def test_an_existing_case_file_is_never_overwritten(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (skill / "skill_meta.json").symlink_to("nowhere.json")

    assert main(["init", str(skill)]) == 4

    assert "skill_meta.json exists: add cases to it, or move it away" in capsys.readouterr().err
    assert not (skill / "nowhere.json").exists()


@pytest.mark.parametrize(
    ("command", "named", "cure"),
    [
        ("init", "empty", "name the folder of a skill"),
        ("init", "lower", "rename lower/skill.md to SKILL.md"),
        ("init", "lower/skill.md", "rename lower/skill.md to SKILL.md"),
        ("init", "skills/sensors/references", "did you mean {folder}/skills/sensors?"),
        ("cases", "skills", "did you mean skills/sensors?"),
        ("list", "lower", "rename lower/skill.md to SKILL.md"),
    ],
)
def test_a_folder_without_a_skill_is_answered_by_the_one_that_was_meant(
    command: str, named: str, cure: str, skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (skill / "references").mkdir()
    for name in ("empty", "lower"):
        Path(name).mkdir()
    shutil.copy(skill / "SKILL.md", "lower/skill.md")

    assert main([command, named]) == 4

    folder = named.removesuffix("/skill.md")
    cure = cure.format(folder=Path.cwd())
    assert capsys.readouterr().err == f"ERROR: {folder}: no SKILL.md in it: {cure}\n"


def test_the_next_command_names_the_folder_of_a_skill_that_was_named_by_its_file(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(skill / "SKILL.md")]) == 0

    command = capsys.readouterr().out.splitlines()[-1]
    assert command == f"pytest --upskill-models offline {skill}"


def test_a_folder_of_skills_gets_a_first_case_file_for_each_skill_without_cases(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, broken = skill.with_name("csv"), skill.with_name("broken")
    shutil.copytree(skill, other)
    broken.mkdir()
    (broken / "SKILL.md").write_text("no frontmatter", "utf-8")
    assert main(["init", str(other)]) == 0
    before = read(other)
    capsys.readouterr()

    code = main(["init", str(skill.parent)])

    said = capsys.readouterr()
    assert code == 4
    assert said.out.splitlines() == [
        (
            f"{other / 'skill_meta.json'}: exists, with 2 cases: pytest-upskill list says what "
            "they need"
        ),
        f"written: {skill / 'skill_meta.json'}",
        "Rewrite the questions and checks, then run at no cost:",
        f"pytest --upskill-models offline {skill.parent}",
    ]
    assert "broken/SKILL.md:1:1: no frontmatter" in said.err
    assert read(other) == before
    assert read(skill)["cases"]


def test_a_skill_may_have_the_name_of_a_command(
    skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (skill / "SKILL.md").read_text("utf-8")
    named = skill.rename(skill.with_name("report"))
    (named / "SKILL.md").write_text(text.replace("name: sensors", "name: report"), "utf-8")
    monkeypatch.chdir(named.parent)

    assert main(["init", "report"]) == 0

    assert read(named)["cases"]
