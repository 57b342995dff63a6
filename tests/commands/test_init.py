"""``pytest-upskill init``: a first case file, without a model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.load import load_skills
from pytest_upskill.commands.derived import propose
from pytest_upskill.commands.main import main
from tests.conftest import Run
from tests.evals import given

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


def test_the_first_cases_name_literals_of_the_skill_and_explain_themselves(
    skill: Path, run_once: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(skill)]) == 0

    assert f"pytest-upskill eval {skill} -m offline" in capsys.readouterr().out
    written = read(skill)
    assert [case.get("expected") for case in written["cases"]] == [
        {"contains": ["0x5A"]},
        {"contains_any": ["--cold-start", "--raw=yes"]},
        {"compile": "python"},
        None,
    ]
    assert written["cases"][-1]["should_trigger"] is False
    assert all(case["$comment"] for case in written["cases"])
    assert "0x5A, --cold-start, --raw=yes" in "".join(written["$comment"])
    result = run_once("--upskill-models=offline", "skills")
    assert (result.ret, result.parseoutcomes()["errors"]) == (1, 4)


def test_a_skill_without_literals_gets_a_case_to_fill_in(skill: Path) -> None:
    (skill / "SKILL.md").write_text("---\nname: sensors\ndescription: D.\n---\nBe kind.\n", "utf-8")

    assert main(["init", str(skill / "SKILL.md")]) == 0

    assert len(load_skills(skill / "skill_meta.json")[0].cases) == 2


@pytest.mark.parametrize(
    ("statement", "key", "texts"),
    [
        ("Mentions the `--sep` flag", "contains", ["--sep"]),
        ('Says "use UTF-8" and `csv.reader`', "contains", ["use UTF-8", "csv.reader"]),
        ("Uses `csv.DictReader` or `csv.reader`", "contains_any", ["csv.DictReader", "csv.reader"]),
        ("Does not recommend `awk`", "not_contains", ["awk"]),
        ("Never uses `eval()` or `exec()`", "not_contains", ["eval()", "exec()"]),
        ("Recommends `uv` instead of `pip`", "contains", ["uv"]),
        ("Names `files` and `--sep`", "contains", ["--sep"]),  # `files` is in the question
    ],
)
def test_a_statement_that_names_a_literal_suggests_a_check(
    statement: str, key: str, texts: list[str]
) -> None:
    proposal = propose(statement, "How do I split files?")

    assert proposal is not None
    assert (proposal.key, list(proposal.texts)) == (key, texts)


@pytest.mark.parametrize(
    "statement",
    [
        "Explains why quoting matters",
        "Suggests a flag such as `--sep`",
        "If it uses `awk`, it says why",
        "Uses `--sep` and not `-s`",
        "Does not recommend `awk`, but `--sep`",
        "Does not use `pip` instead of `uv`",
        "Names the file `<name>.csv`",
        "Repeats the `files` of the question",
        "Ends with `.`",
    ],
)
def test_a_statement_that_leaves_the_words_open_suggests_none(statement: str) -> None:
    assert propose(statement, "How do I split files?") is None


def test_expectations_of_an_evals_file_become_checks_or_are_listed(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evals = [
        {
            "id": "split",
            "prompt": "How do I split it?",
            "files": {"a.csv": "1,2"},
            "expectations": [
                "Mentions the `--sep` flag",
                "Explains why quoting matters",
            ],
        },
        {"id": "weather", "prompt": "Will it rain?", "should_trigger": False},
        {"id": "old", "prompt": "x", "assertions": [{"type": "regex", "value": "a+"}]},
    ]
    (skill / "evals").mkdir()
    (skill / "evals" / "evals.json").write_text(json.dumps(evals), "utf-8")

    assert main(["init", str(skill)]) == 0

    assert [(case["id"], case["expected"]) for case in read(skill)["cases"]] == [
        ("split", {"contains": ["--sep"]}),
        ("old", {"regex": ["a+"]}),
    ]
    split, _ = load_skills(skill / "skill_meta.json")[0].cases
    assert (split.input, given(split)) == ("How do I split it?", {"a.csv": "1,2"})
    lines = capsys.readouterr().out.splitlines()
    pytest.LineMatcher(lines).fnmatch_lines(
        [
            "written: *skill_meta.json: 2 cases with checks by code; review each *",
            "evals.json still runs too: keep each case in one file only",
            "  proposed checks: 1",
            "    split: contains '--sep' <- Mentions the `--sep` flag",
            "  needs a judge (--upskill-judge MODEL): 1",
            "    split: Explains why quoting matters",
            "  trigger tests, which run from this file as they are: 1",
            "    weather: Will it rain?",
        ]
    )


def test_nothing_is_written_where_nothing_can_be_proposed(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evals = [{"prompt": "x", "expectations": ["It is polite"]}]
    (skill / "evals.json").write_text(json.dumps(evals), "utf-8")

    assert main(["init", str(skill)]) == 0

    assert capsys.readouterr().out.startswith("nothing written: no expectation names a literal")
    assert not (skill / "skill_meta.json").exists()


def test_an_existing_case_file_is_never_overwritten(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (skill / "skill_meta.json").symlink_to("nowhere.json")

    assert main(["init", str(skill)]) == 4

    assert "skill_meta.json exists: add cases to it, or move it away" in capsys.readouterr().err
    assert not (skill / "nowhere.json").exists()


def test_a_folder_that_is_no_skill_is_refused(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(pytester.path)]) == 4

    assert ": no SKILL.md in it: name the folder of a skill" in capsys.readouterr().err


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
        f"written: {skill / 'skill_meta.json'}",
        "1 skill with cases: unchanged",
        "Rewrite the questions and checks, then run at no cost:",
        f"pytest-upskill eval {skill.parent} -m offline",
    ]
    assert "broken/SKILL.md:1:1: no frontmatter" in said.err
    assert read(other) == before
    assert read(skill)["cases"]
