"""Which skills a branch changed: as if git was asked about each, but it is asked only once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from pytest_upskill.project import git
from pytest_upskill.project.branch_point import BranchPoint
from tests.git_repository import commit_all
from tests.git_repository import git as run_git


def _commit(skill: Path) -> None:
    (skill / "SKILL.md").write_text("new", "utf-8")
    commit_all(skill.parents[1])


def _stage(skill: Path) -> None:
    (skill / "staged.md").write_text("new", "utf-8")
    run_git(skill, "add", ".")


def _nest(skill: Path) -> None:
    (skill / "nested").mkdir()
    (skill / "nested" / "a.md").write_text("a", "utf-8")
    commit_all(skill / "nested")


def _ignore(skill: Path, name: str) -> None:
    (skill / name).write_text("new", "utf-8")
    (skill.parents[1] / ".gitignore").write_text(f"{name}\n", "utf-8")


def _start_again_ignored(skill: Path) -> None:
    run_git(skill, "rm", "--quiet", "--cached", "SKILL.md")
    commit_all(skill.parents[1])
    run_git(skill, "branch", "--force", "main", "HEAD")
    _ignore(skill, "SKILL.md")


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "nothing": (lambda _: None, False),
    "a commit": (_commit, True),
    "a staged file": (_stage, True),
    "an edit": (lambda skill: (skill / "SKILL.md").write_text("new", "utf-8"), True),
    "a mode": (lambda skill: (skill / "SKILL.md").chmod(0o755), True),
    "a deletion": (lambda skill: (skill / "deep" / "a.md").unlink(), True),
    "an untracked file": (lambda skill: (skill / "deep" / "new\nline").write_text("a"), True),
    "a repository in it": (_nest, True),
    "a link": (lambda skill: (skill / "link").symlink_to("../other"), True),
    "an ignored file": (lambda skill: _ignore(skill, "build.log"), False),
    "a SKILL.md that was never committed": (_start_again_ignored, True),
    "a skill of a longer name": (lambda skill: _commit(Path(f"{skill}-2")), False),
    "a file beside": (lambda skill: skill.with_name("README.md").write_text("new"), False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_in_a_skill_is_found_and_one_beside_it_is_not(change: str, tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "ä b\n"
    for folder in (skill, Path(f"{skill}-2"), skill.with_name("other")):
        (folder / "deep").mkdir(parents=True)
        (folder / "SKILL.md").write_text("old", "utf-8")
        (folder / "deep" / "a.md").write_text("old", "utf-8")
    commit_all(tmp_path)
    run_git(tmp_path, "switch", "--quiet", "--create", "branch")
    edit, is_changed = CHANGES[change]
    edit(skill)

    point = BranchPoint("main", tmp_path)

    assert point.is_changed(skill) is is_changed
    assert git.is_changed(point.commit(skill), skill) is is_changed


def test_a_skill_that_is_a_repository_or_a_link_is_compared_with_its_own(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("old", "utf-8")
    commit_all(tmp_path)
    linked = tmp_path / "skills" / "linked"
    linked.parent.mkdir()
    linked.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "SKILL.md").write_text("old", "utf-8")
    assert BranchPoint("HEAD", tmp_path).is_changed(tmp_path)
    commit_all(tmp_path)

    assert not BranchPoint("HEAD", tmp_path).is_changed(tmp_path)
    assert not BranchPoint("HEAD", tmp_path).is_changed(linked)
    (tmp_path / "elsewhere" / "SKILL.md").write_text("new", "utf-8")
    assert BranchPoint("HEAD", tmp_path).is_changed(tmp_path)
    assert BranchPoint("HEAD", tmp_path).is_changed(linked)


def test_git_is_asked_no_more_often_about_many_skills_than_about_one(
    tmp_path: Path,
) -> None:
    skills = [tmp_path / "skills" / str(number) for number in range(20)]
    for skill in skills:
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("old", "utf-8")
    commit_all(tmp_path)
    point = BranchPoint("HEAD", tmp_path)

    with patch.object(subprocess, "run", wraps=subprocess.run) as run:
        point.is_changed(skills[0])
        for_one = run.call_count
        assert not any(map(point.is_changed, skills))

    assert run.call_count == for_one
