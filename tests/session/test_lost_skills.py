"""A pull request that takes a skill out of the measurement: by a setting, a move, a new name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git
from tests.session.taken_away import ARGS, CASES, branch, change, said

__all__ = ["branch"]

pytestmark = pytest.mark.needs("git")


@pytest.mark.parametrize(
    "option",
    ["--collect-only", "--upskill-dry-run", "--setup-plan", "--markers"],
)
@pytest.mark.parametrize("asked", ["--upskill-compare=main", "--upskill-changed-since=main"])
def test_a_setting_makes_pytest_run_nothing(
    branch: Path, run_once: Run, option: str, asked: str
) -> None:
    change(branch)
    Path("pytest.ini").write_text(f"[pytest]\naddopts = {option}\n", "utf-8")

    result = run_once("--upskill-models=offline", asked, "skills")

    assert result.ret == NOT_MEASURED
    said = f"ERROR: {asked.partition('=')[0]}: nothing was compared, as no case ran: *addopts*"
    result.stderr.fnmatch_lines([said])


WAYS = {
    "an option": ("pytest.ini", "[pytest]\naddopts = --ignore=skills/billing\n"),
    "a pattern": ("pytest.ini", "[pytest]\naddopts = --ignore-glob=*/billing\n"),
    "a setting": ("pytest.ini", "[pytest]\nnorecursedirs = billing\n"),
    "a hook": ("conftest.py", 'collect_ignore = ["skills/billing"]\n'),
    "a virtual environment": ("skills/billing/pyvenv.cfg", ""),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("others", ["--upskill-changed-since=main", "-q"])
def test_a_changed_skill_is_kept_from_pytest(
    branch: Path, run_once: Run, way: str, others: str
) -> None:
    change(branch)
    file, text = WAYS[way]
    Path(file).write_text(text, "utf-8")
    none = "1 changed skill is not fully measured"

    result = run_once(*ARGS, others)
    strict = run_once(*ARGS, others, "--upskill-fail-on=hurts,regression,cases")

    said(result, "skills/billing was changed since main, but pytest does not collect it", none)
    assert result.ret == pytest.ExitCode.OK
    assert strict.ret == pytest.ExitCode.TESTS_FAILED


def test_a_skill_is_moved_to_where_pytest_does_not_look(branch: Path, run_once: Run) -> None:
    shutil.move(branch, branch.parent / "build" / "billing")
    moved = "skills/billing was deleted or moved away since main: *"

    said(run_once(*ARGS), moved, "1 changed skill is not fully measured")


def test_a_skill_is_moved_out_of_the_folders_that_pytest_is_given(
    branch: Path, run_once: Run
) -> None:
    git(branch.parents[1], "mv", "skills/billing", "elsewhere")
    moved = "skills/billing (now elsewhere) was deleted or moved away since main: *"

    result = run_once(*ARGS)
    strict = run_once(*ARGS, "--upskill-fail-on=cases")

    said(result, moved, "1 changed skill is not fully measured")
    assert strict.ret == pytest.ExitCode.TESTS_FAILED


def test_a_skill_that_became_a_link_is_not_gone(branch: Path, run_once: Run) -> None:
    git(branch.parents[1], "mv", "skills/billing", "elsewhere")
    branch.symlink_to("../elsewhere")

    result = run_once(*ARGS)

    result.stdout.no_fnmatch_line("*moved away*")


def test_a_changed_skill_that_no_argument_contains_is_named_and_keeps_the_tick(
    branch: Path, run: Run
) -> None:
    for name in ("one", "two"):
        text = f"---\nname: {name}\ndescription: A new skill.\n---\nText.\n"
        Path("tools", name).mkdir(parents=True)
        Path("tools", name, "SKILL.md").write_text(text, "utf-8")
    git(branch, "add", "--all", ".", ":(top)tools")

    result = run(*ARGS)

    line = "tools/one, tools/two are outside the arguments, and changed: *"
    result.stdout.fnmatch_lines([f"upskill: {line}"])
    page = Path("r.md").read_text("utf-8")
    assert line[:-1] in page
    assert "\u2705" in page.splitlines()[1]


def test_a_renamed_skill_with_its_cases_lost_none(branch: Path, run_once: Run) -> None:
    git(branch, "mv", "../billing", "../bills")
    file = branch.with_name("bills") / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace("name: billing", "name: bills"), "utf-8")

    result = run_once(*ARGS)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*deleted or moved*")


def test_a_renamed_skill_whose_cases_outside_have_its_old_name(branch: Path, run_once: Run) -> None:
    outside = branch.parent / "evals" / "evals.json"
    outside.parent.mkdir()
    inside = branch / "evals" / "evals.json"
    cases = {"skill_name": "billing", "evals": json.loads(inside.read_text("utf-8"))}
    outside.write_text(json.dumps(cases), "utf-8")
    inside.write_text(json.dumps(cases), "utf-8")
    commit_all(branch.parents[1])
    git(branch, "branch", "--force", "main")
    git(branch, "mv", "../billing", "../bills")
    file = branch.with_name("bills") / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace("name: billing", "name: bills"), "utf-8")

    result = run_once(*ARGS)

    said(result, "skills/evals/evals.json was for a skill deleted or renamed since main: write *")


def test_a_skill_that_was_not_measured_is_not_hidden_by_one_of_its_name(
    write_skill: WriteSkill, pytester: pytest.Pytester, run_once: Run
) -> None:
    for place, case in (("one", CASES[0]), ("two", CASES[1] | {"models": ["opus"]})):
        shutil.move(write_skill(case), pytester.path / "skills" / place / "billing")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    for text in pytester.path.glob("skills/*/*/SKILL.md"):
        text.write_text(text.read_text("utf-8") + "More.\n", "utf-8")

    result = run_once(*ARGS)

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        ["exit code 75: nothing was measured of what changed in billing: *"]
    )
