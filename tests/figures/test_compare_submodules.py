"""Comparisons of skills that lie in a git submodule."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill, budget_cases
from tests.figures.conftest import LENIENT
from tests.git_repository import commit_all, git

pytestmark = pytest.mark.needs("git")

SHARED = ("--upskill-models=offline", LENIENT, "shared")


@pytest.fixture
def bumped(
    repository: Path, write_skill: WriteSkill, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Bump a submodule, on the branch, to what its own main already holds."""
    write_skill(*budget_cases(5))
    origin = tmp_path_factory.mktemp("origin")
    shutil.copytree(repository / "skills" / "billing", origin / "billing")
    commit_all(origin)
    git(repository, "switch", "--quiet", "main")
    git(repository, "submodule", "--quiet", "add", str(origin), "shared")
    commit_all(repository)
    git(repository, "switch", "--quiet", "--create", "bump")
    skill = origin / "billing" / "SKILL.md"
    skill.write_text(skill.read_text("utf-8").replace("37", "a few"), "utf-8")
    commit_all(origin)
    git(repository / "shared", "pull", "--quiet", "origin", "main")
    return repository


@pytest.mark.parametrize("committed", [True, False])
def test_a_submodule_is_compared_with_what_the_project_held_there(
    bumped: Path, run_once: Run, committed: bool
) -> None:
    sha = git(bumped, "rev-parse", "main").strip()
    if committed:
        commit_all(bumped)

    result = run_once(*SHARED, f"--upskill-compare={sha}", f"--upskill-changed-since={sha}")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"billing on offline: *0/5 with the skill, {sha} 5/5, *"])


def test_a_submodule_at_the_same_commit_is_unchanged(bumped: Path, run_once: Run) -> None:
    commit_all(bumped)

    result = run_once(*SHARED, "--upskill-compare=HEAD")
    none = run_once(*SHARED, "--upskill-changed-since=HEAD")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["billing on offline: unchanged since HEAD (*): not compared"])
    none.stdout.fnmatch_lines(["left out 1 skill unchanged since HEAD, so there is nothing to run"])


def test_a_submodule_that_was_moved_is_compared_with_what_it_was(
    bumped: Path, run_once: Run
) -> None:
    git(bumped, "mv", "shared", "vendored")

    result = run_once(*SHARED[:-1], "vendored", "--upskill-compare=main")

    result.stdout.fnmatch_lines(["billing on offline: *0/5 with the skill, main 5/5, *"])


def test_a_submodule_that_the_branch_adds_is_new(bumped: Path, run_once: Run) -> None:
    before = git(bumped, "rev-parse", "branch").strip()

    result = run_once(*SHARED, f"--upskill-compare={before}")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"billing on offline: new since {before}: not compared"])


def test_a_run_within_a_submodule_is_about_that_repository(
    bumped: Path, run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bumped / "shared")

    result = run_once(*SHARED[:-1], "--upskill-compare=origin/main")

    result.stdout.fnmatch_lines(["billing on offline: unchanged since origin/main (*)*"])


def test_a_submodule_that_lacks_its_old_commit_is_refused_with_the_cure(
    bumped: Path, run_once: Run
) -> None:
    held = git(bumped, "rev-parse", "main:shared").strip()
    shutil.rmtree(bumped / ".git" / "modules" / "shared" / "objects")
    url = git(bumped, "config", "--file", ".gitmodules", "submodule.shared.url").strip()
    (bumped / ".git" / "modules" / "shared" / "objects").mkdir()
    git(bumped / "shared", "fetch", "--quiet", "--depth=1", f"file://{url}", "main")

    result = run_once(*SHARED, "--upskill-compare=main")

    cure = f"git -C {bumped / 'shared'} fetch origin {held}"
    result.stdout.fnmatch_lines([f"*the submodule * lacks commit {held[:7]}, *: {cure}"])
