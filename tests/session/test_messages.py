"""A mistake that many files repeat is one warning, with a count and the first places."""

from __future__ import annotations

import pytest

from tests.conftest import Run, WriteSkill

OFFLINE = ("--upskill-models", "offline", "skills")
CAUSE = "PytestWarning: owner: unknown key: the specification keeps such entries under 'metadata'"
FOUR = tuple(f"skills/skill-{number}/SKILL.md:2:1" for number in range(4))


@pytest.fixture
def alike(write_skill: WriteSkill) -> None:
    """Write four skills with the same departure from the specification."""
    for number in range(4):
        file = write_skill(name=f"skill-{number}") / "SKILL.md"
        file.write_text(file.read_text("utf-8").replace("---\n", "---\nowner: me\n", 1), "utf-8")


@pytest.mark.usefixtures("alike")
@pytest.mark.parametrize("args", [("--co",), ("--upskill-models=m=offline",)], ids=" ".join)
def test_what_several_files_repeat_is_one_warning_with_its_first_places(
    run: Run, args: tuple[str, ...]
) -> None:
    result = run(*OFFLINE, *args, "-W", "default")

    told = [line.strip() for line in result.outlines if CAUSE in line]
    assert told == [f"{FOUR[0][:-2]}: {CAUSE} (4 times: {', '.join(FOUR[:3])} and 1 more)"]


@pytest.mark.usefixtures("alike")
def test_verbose_names_every_place(run_once: Run) -> None:
    result = run_once(*OFFLINE, "-v", "-W", "default")

    result.stdout.fnmatch_lines([f"*(4 times: {', '.join(FOUR)})"])


@pytest.mark.usefixtures("alike")
@pytest.mark.parametrize("args", [("-W", "ignore"), ("-p", "no:warnings")], ids=" ".join)
def test_warnings_that_are_ignored_are_not_shown(run_once: Run, args: tuple[str, ...]) -> None:
    result = run_once(*OFFLINE, "-W", "default", *args)

    result.assert_outcomes(passed=12)
    result.stdout.no_fnmatch_line("*unknown key*")


def test_a_warning_that_is_to_be_an_error_keeps_its_file_from_running(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(name="sound")
    file = write_skill(name="owned") / "SKILL.md"
    text = file.read_text("utf-8").replace("---\n", "---\nowner: me\nversion: 1\n", 1)
    file.write_text(text, "utf-8")

    result = run_once(*OFFLINE, "-W", "error")

    result.assert_outcomes(errors=1, passed=3)
    result.stdout.fnmatch_lines(
        ["skills/owned/SKILL.md:2:1: owner: unknown *", "skills/owned/SKILL.md:3:1: version: *"]
    )


def test_cases_that_will_be_skipped_for_one_reason_are_one_warning_of_lint(
    run_once: Run, write_skill: WriteSkill
) -> None:
    case = {"id": "a", "input": "Say hi.", "expected": {"contains": "hi"}, "validator": "v"}
    write_skill(case, {**case, "id": "b", "input": "Say hello."})

    result = run_once("--upskill-lint", "skills", "-W", "default")

    result.assert_outcomes(warnings=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*PytestWarning: validator: upskill's validators *(2 times: skills/*"]
    )


def test_a_path_may_contain_colons(run_once: Run, write_skill: WriteSkill) -> None:
    file = write_skill(name="a:b") / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace("---\n", "---\nowner: me\n", 1), "utf-8")

    result = run_once(*OFFLINE, "-W", "default")

    result.stdout.fnmatch_lines(["*skills/a:b/SKILL.md:2: *owner: unknown key*"])
