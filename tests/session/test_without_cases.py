"""Skills without cases, and cases that a pull request removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git

pytestmark = pytest.mark.needs("git")

ARGS = ("--upskill-models=offline", "--upskill-compare=main", "skills")
STRICT = "--upskill-fail-on=regression,cases"


@pytest.fixture
def branch(write_skill: WriteSkill, pytester: pytest.Pytester) -> Path:
    """A branch of a repository with one skill with cases."""
    case = {"id": "a", "input": "What?", "expected": {"contains": "37"}}
    write_skill(case, {**case, "id": "b", "input": "When?"})
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    return pytester.path


def write_new_skill(branch: Path) -> None:
    new = branch / "skills" / "hiring"
    new.mkdir()
    text = "---\nname: hiring\ndescription: How we hire.\n---\nAsk.\n"
    new.joinpath("SKILL.md").write_text(text, "utf-8")


def test_a_new_skill_without_cases_is_a_skipped_test(branch: Path, run: Run) -> None:
    write_new_skill(branch)

    result = run(*ARGS, "--junitxml=out.xml", "-rs")

    cure = "no cases: pytest-upskill init skills/hiring writes a first skill_meta.json"
    result.stdout.fnmatch_lines([f"SKIPPED [[]1] skills/hiring/SKILL.md:1: hiring has {cure}"])
    xml = Path("out.xml").read_text("utf-8")
    assert 'classname="skills.hiring.SKILL.md" name="cases"' in xml
    assert cure in xml


def test_beside_a_new_skill_without_cases_there_is_something_to_do(branch: Path, run: Run) -> None:
    write_new_skill(branch)

    result = run("--upskill-models=offline", "--upskill-changed-since=main", "skills")

    result.stdout.fnmatch_lines(["skipped 1 skill unchanged since main"])


def test_a_new_skill_without_cases_fails_where_that_is_wanted(branch: Path, run: Run) -> None:
    write_new_skill(branch)

    result = run(*ARGS, STRICT)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED skills/hiring/SKILL.md::cases - hiring has no cases: *"])


@pytest.mark.parametrize("since", ["--upskill-compare=main", "--upskill-changed-since=main"])
def test_a_skill_whose_case_file_was_deleted_is_not_measured_and_says_so(
    branch: Path, run_once: Run, write_skill: WriteSkill, since: str
) -> None:
    write_skill(name="shipping")
    commit_all(branch, "unchanged")
    git(branch, "branch", "--force", "main")
    branch.joinpath("skills", "billing", "skill_meta.json").unlink()

    result = run_once("--upskill-models=offline", since, "skills", "-rs")

    assert result.ret == NOT_MEASURED
    why = "no cases any more: skills/billing/skill_meta.json was deleted since main: restore it, *"
    result.stdout.fnmatch_lines_random(
        [f"SKIPPED [[]1] *: billing has {why}", f"exit code 75: billing has {why}"]
    )
    result.stdout.no_fnmatch_line("*init*")


def test_a_skill_whose_case_file_has_a_name_that_is_not_read_is_not_measured(
    branch: Path, run_once: Run
) -> None:
    git(branch, "mv", "skills/billing/skill_meta.json", "skills/billing/skills_meta.json")

    result = run_once("--upskill-models=offline", "--upskill-compare=main", "skills")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines_random(
        [
            "upskill: skills/billing/skills_meta.json is not read: rename it to skill_meta.json",
            "exit code 75: billing has no cases any more: *",
        ]
    )


def test_a_case_file_that_got_another_name_is_named_with_it(branch: Path, run_once: Run) -> None:
    git(branch, "mv", "skills/billing/skill_meta.json", "skills/billing/checks.json")

    result = run_once("--upskill-models=offline", "--upskill-compare=main", "skills")

    assert result.ret == NOT_MEASURED
    now = "skills/billing/skill_meta.json is now skills/billing/checks.json, which is not read: "
    result.stdout.fnmatch_lines([f"exit code 75: billing has no cases any more: {now}*"])


def test_a_renamed_skill_whose_case_file_was_deleted_says_so(branch: Path, run_once: Run) -> None:
    git(branch, "mv", "skills/billing", "skills/invoices")
    branch.joinpath("skills", "invoices", "skill_meta.json").unlink()

    result = run_once("--upskill-models=offline", "--upskill-compare=main", "skills")

    assert result.ret == NOT_MEASURED
    why = "no cases any more: skills/billing/skill_meta.json was deleted since main: restore it, *"
    result.stdout.fnmatch_lines([f"exit code 75: invoices has {why}"])


@pytest.mark.parametrize("option", ["--collect-only", "--upskill-dry-run"])
def test_no_test_is_made_up_where_none_runs(branch: Path, run_once: Run, option: str) -> None:
    write_new_skill(branch)

    result = run_once(*ARGS, STRICT, option)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*::cases*")


@pytest.mark.parametrize("words", ["regression", "cases"])
def test_a_removed_case_fails_the_gate_where_that_is_wanted(
    branch: Path, run_once: Run, words: str
) -> None:
    file = branch / "skills" / "billing" / "skill_meta.json"
    meta = json.loads(file.read_text("utf-8"))
    meta["cases"].pop()
    file.write_text(json.dumps(meta), "utf-8")

    result = run_once(*ARGS, f"--upskill-fail-on={words}", "--upskill-min-pass-rate=0")

    if words == "cases":
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(
            [
                "billing on offline: cases since main (???????): removed: b *",
                "next: restore the cases, or have a maintainer agree *",
            ]
        )
    else:
        assert result.ret == pytest.ExitCode.OK


def test_queries_of_a_skill_that_no_agent_sees_any_more_fail_the_gate_too(
    branch: Path, run_once: Run
) -> None:
    folder = branch / "skills" / "billing"
    meta = json.loads((folder / "skill_meta.json").read_text("utf-8"))
    meta["cases"].append({"id": "asked", "input": "Bill Ada.", "should_trigger": True})
    (folder / "skill_meta.json").write_text(json.dumps(meta), "utf-8")
    git(branch, "switch", "--quiet", "main")
    commit_all(branch)
    git(branch, "switch", "--quiet", "--create", "hidden")
    text = (folder / "SKILL.md").read_text("utf-8")
    hidden = text.replace("\n---\n", "\ndisable-model-invocation: true\n---\n", 1)
    (folder / "SKILL.md").write_text(hidden, "utf-8")

    result = run_once(*ARGS, "--upskill-fail-on=cases")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["billing on offline: cases since *: not asked any more: asked *"])
