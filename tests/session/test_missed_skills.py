"""Skills that did not run, because they have no cases or pytest does not find them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import QUESTION, Run, WriteSkill

CASE = {"id": "budget", "input": QUESTION, "expected": {"contains": "37"}}


@pytest.mark.parametrize("name", [None, "quiz.json"])
def test_skills_without_cases_are_named_where_nothing_ran(
    run: Run, write_skill: WriteSkill, name: str | None
) -> None:
    for skill in ("billing", "shipping"):
        cases = write_skill(name=skill) / "skill_meta.json"
        if name is None:
            cases.unlink()
        else:
            cases.rename(cases.with_name(name))

    result = run("--upskill-models", "offline", "skills")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    hint = (
        "upskill: billing, shipping have no cases: pytest-upskill init SKILL writes a first "
        "skill_meta.json"
    )
    assert result.outlines.count(hint) == 1


@pytest.mark.parametrize("home", [".claude/skills", "skills/.curated", "home/.agent/skills"])
def test_skills_in_a_folder_that_pytest_does_not_enter_are_named_where_nothing_ran(
    run_once: Run, write_skill: WriteSkill, home: str
) -> None:
    skill = write_skill(name="billing")
    Path(home).mkdir(parents=True)
    skill.rename(Path(home, "billing"))

    result = run_once("--upskill-models", "offline")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    told = (
        f"upskill: pytest does not look for tests in {home}: "
        "pass it as an argument to run the skills there"
    )
    assert result.outlines.count(told) == 1


@pytest.mark.parametrize("option", ["--upskill-models=offline", "--upskill-lint"])
def test_hidden_skills_are_named_beside_others_but_not_links_to_them(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, option: str
) -> None:
    for home in (".claude", ".agents"):
        (pytester.path / home / "skills").mkdir(parents=True)
    (pytester.path / ".agents/skills/billing").symlink_to(write_skill(name="billing"))
    write_skill(name="hidden").rename(pytester.path / ".claude/skills/hidden")

    result = run_once(option)

    result.stdout.fnmatch_lines(["upskill: pytest does not look for tests in .claude/skills: *"])


def test_hidden_skills_are_not_named_where_tests_were_deselected(
    run: Run, write_skill: WriteSkill
) -> None:
    Path(".claude/skills").mkdir(parents=True)
    write_skill(name="hidden").rename(".claude/skills/hidden")
    write_skill(CASE, CASE | {"id": "other"})

    result = run("--upskill-models=offline", "-k", "budget")

    result.stdout.no_fnmatch_line("*does not look for tests*")


def test_a_skill_without_cases_is_not_mentioned_where_others_have_some(
    run_once: Run, write_skill: WriteSkill
) -> None:
    (write_skill(name="shipping") / "skill_meta.json").unlink()
    write_skill()

    result = run_once("--upskill-models", "offline", "skills")

    result.assert_outcomes(passed=3)
    result.stdout.no_fnmatch_line("upskill: *no cases*")


def test_a_folder_without_skills_says_what_is_looked_for(
    run_once: Run, pytester: pytest.Pytester
) -> None:
    pytester.mkdir("skills")
    pytester.makefile(".yml", mkdocs="site_name: Ours")

    result = run_once("skills", "--upskill-models=offline")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    said = "upskill: no skill in skills, that is, no folder with a SKILL.md: name another folder, *"
    result.stdout.fnmatch_lines([said])


@pytest.mark.usefixtures("skill")
@pytest.mark.parametrize(
    ("argument", "cure"),
    [
        ("skills/billing/skills_meta.json", " (did you mean 'skill_meta.json'?)"),
        ("skills/biling/skill_meta.json::budget", " (did you mean 'billing'?)"),
        ("skils", " (did you mean 'skills'?)"),
        ("haiku", ": write commas between models, as in --upskill-models haiku,sonnet"),
        ("elsewhere", ""),
    ],
)
def test_an_argument_that_does_not_exist_is_an_error_with_what_was_meant(
    argument: str, cure: str, run_once: Run
) -> None:
    result = run_once(argument, "--upskill-models=offline")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: file or directory not found: {argument}{cure}" in result.errlines


@pytest.mark.usefixtures("skill")
def test_workers_that_find_nothing_say_what_was_meant(run: Run) -> None:
    result = run("skils", "--upskill-models=offline")

    lines = [*result.outlines, *result.errlines]
    assert any("file or directory not found: skils (did you mean 'skills'?)" in x for x in lines)


def test_a_skill_of_the_named_folder_that_pytest_does_not_enter_is_named_itself(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill(name="billing")
    write_skill(name="shipping")
    pytester.makeini("[pytest]\nnorecursedirs = billing")

    result = run_once("--upskill-models", "offline", "skills")

    result.stdout.fnmatch_lines(["upskill: pytest does not look for tests in skills/billing: *"])


def test_settings_that_keep_pytest_from_every_skill_are_told(
    write_skill: WriteSkill, run_once: Run, pytester: pytest.Pytester
) -> None:
    write_skill()
    pytester.makeini("[pytest]\ntestpaths = tests\nupskill_models = offline")
    (pytester.mkdir("tests") / "test_a.py").write_text("def test_a(): pass", "utf-8")

    result = run_once()

    result.stdout.fnmatch_lines(["upskill: pytest does not look for tests in skills: *"])
