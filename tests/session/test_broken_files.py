"""Case files that cannot be read: an error each, and the others run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import QUESTION, Run, WriteSkill

CASE = {"id": "budget", "input": QUESTION, "expected": {"contains": "37"}}
META = "skills/billing/skill_meta.json"
MERGED = "---\nname: merged\ndescription: What a merge has left.\n---\n"
BROKEN = {
    "no-json": {"skill_meta.json": '{"cases": ['},
    "too-large": {"SKILL.md": f"---\nname: too-large\ndescription: Large.\n---\n{'x' * (1 << 20)}"},
    "no-description": {"SKILL.md": "---\nname: no-description\n---\n"},
    "merged": {"SKILL.md": f"{MERGED}<<<<<<< HEAD\nOne.\n=======\nTwo.\n>>>>>>> main\n"},
    "twin": {"SKILL.md": "---\nname: billing\ndescription: The same name.\n---\n"},
}


def rewrite(folder: Path, value: Any) -> None:
    (folder / "skill_meta.json").write_text(json.dumps(value), "utf-8")


def test_every_problem_of_a_skill_is_one_line_with_its_place(
    run_once: Run, write_skill: WriteSkill
) -> None:
    folder = write_skill(CASE, {"id": "budget", "input": "", "expected": {"contians": "37"}})
    (folder / "SKILL.md").unlink()

    result = run_once("--upskill-models", "offline", "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    start = result.outlines.index(next(line for line in result.outlines if "no SKILL.md" in line))
    lines = result.outlines[start : start + 4]
    assert lines[0].startswith("skills/billing: no SKILL.md beside skill_meta.json")
    assert [line.split(": ")[1] for line in lines[1:]] == [
        "cases[1].id",
        "cases[1].input",
        "cases[1].expected.contians",
    ]
    assert all(line.startswith(f"{META}:1:") for line in lines[1:])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_an_unreadable_case_file_is_a_collection_error_of_one_line(
    run: Run, write_skill: WriteSkill
) -> None:
    (write_skill() / "skill_meta.json").write_text('{"cases": [', "utf-8")

    result = run("--upskill-models", "offline", "skills")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"{META}:1:12: *"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("mode", [("--upskill-models", "offline"), ("--upskill-lint",)])
def test_a_skill_file_that_is_asked_for_says_what_to_name_instead(
    run_once: Run, write_skill: WriteSkill, mode: tuple[str, ...]
) -> None:
    write_skill()

    result = run_once(*mode, "skills/billing/SKILL.md")

    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["SKILL.md contains no cases: name its folder instead, skills/billing"]
    )


def test_a_skill_file_that_is_asked_for_is_left_to_who_collects_it(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(body=">>> 36 + 1\n37\n")

    result = run_once(
        "--upskill-models", "offline", "--doctest-glob", "*.md", "skills/billing/SKILL.md"
    )

    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "mode",
    [
        ("--upskill-models", "offline"),
        ("--upskill-models", "offline", "-k", "fine"),
        ("--upskill-models", "offline", "-m", "upskill(arm='with_skill')"),
        ("--upskill-models", "offline", "--collect-only"),
        ("--upskill-models", "offline", "--upskill-dry-run"),
        ("--upskill-lint",),
    ],
    ids=" ".join,
)
def test_a_broken_file_is_an_error_of_its_own_and_the_others_run(
    run: Run, write_skill: WriteSkill, mode: tuple[str, ...]
) -> None:
    write_skill(CASE, name="fine")
    write_skill(CASE, CASE | {"id": "asked", "should_trigger": True})
    for name, files in BROKEN.items():
        folder = write_skill(CASE | {"should_trigger": True}, name=name)
        for file, text in files.items():
            (folder / file).write_text(text, "utf-8")

    result = run(*mode, "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    output = result.stdout.str()
    for broken in (*BROKEN, "billing"):
        assert re.search(rf"(ERROR|FAILED) skills/{broken}/skill_meta\.json", output), broken
    outcomes = result.parseoutcomes()
    assert "error" not in outcomes or outcomes["errors"] == len(BROKEN) + 1
    if "--collect-only" not in mode and "--upskill-dry-run" not in mode:
        assert outcomes["passed"] >= 1
    result.stdout.no_fnmatch_line("*Interrupted*")


def test_other_tests_that_cannot_be_imported_still_end_the_run(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    rewrite(write_skill(), {"cases": []})
    (pytester.path / "test_broken.py").write_text("import nothing_of_this_name", "utf-8")

    result = run_once("--upskill-models", "offline")

    assert result.ret == pytest.ExitCode.INTERRUPTED
