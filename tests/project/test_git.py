from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.project.git import GitError, extract, gone_files, is_dirty, merge_base
from tests.git_repository import commit_all, git

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "repository" / "skills" / "csv"
    folder.joinpath("references").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: csv\ndescription: CSV.\n---\n", "utf-8")
    (folder / "references" / "v2.md").write_text("second", "utf-8")
    return folder


def before(skill: Path) -> Path:
    """Commit, and return a folder with what was committed."""
    top = skill.parents[1]
    commit_all(top)
    into = top.with_name("before")
    into.mkdir()
    found = extract(git(top, "rev-parse", "HEAD").strip(), skill, into)
    assert found == into / "skills" / "csv"
    return found


def test_links_inside_a_skill_are_part_of_its_old_version(skill: Path) -> None:
    (skill / "references" / "latest.md").symlink_to("v2.md")

    assert (before(skill) / "references" / "latest.md").read_text("utf-8") == "second"


def test_links_out_of_a_skill_are_not(skill: Path) -> None:
    (skill / "secret").symlink_to("/etc/passwd")
    (skill / "above").symlink_to("../../..")
    (skill / "loop").symlink_to("loop")

    assert sorted(path.name for path in before(skill).iterdir()) == ["SKILL.md", "references"]


def test_a_skill_may_be_a_whole_repository(skill: Path) -> None:
    commit = commit_all(skill)
    into = skill.with_name("before")
    into.mkdir()

    assert extract(commit, skill, into) == into
    assert (into / "references" / "v2.md").read_text("utf-8") == "second"


def test_what_is_kept_out_of_archives_is_part_of_the_old_version(skill: Path) -> None:
    (skill / ".gitattributes").write_text("references export-ignore\n", "utf-8")

    assert (before(skill) / "references" / "v2.md").exists()


def test_reading_an_old_version_changes_nothing(skill: Path) -> None:
    commit_all(skill.parents[1])
    (skill / "SKILL.md").write_text("changed", "utf-8")
    git(skill.parents[1], "add", ".")
    status = git(skill.parents[1], "status", "--porcelain")
    into = skill.parents[2] / "before"
    into.mkdir()

    extract("HEAD", skill, into)

    assert git(skill.parents[1], "status", "--porcelain") == status
    assert (skill / "SKILL.md").read_text("utf-8") == "changed"


def test_the_cure_for_a_ref_that_a_shallow_clone_lacks_works(skill: Path, tmp_path: Path) -> None:
    top = skill.parents[1]
    commit_all(top)
    git(top, "branch", "base")
    (skill / "SKILL.md").write_text("changed", "utf-8")
    commit_all(top)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{top}", str(clone))

    with pytest.raises(GitError) as error:
        merge_base(clone, "origin/base")

    command = "git fetch --unshallow origin base:refs/remotes/origin/base"
    assert f": {command}, or write another ref" in str(error.value)
    git(clone, *command.split()[1:])
    assert merge_base(clone, "origin/base") == git(top, "rev-parse", "base").strip()


def test_settings_of_the_user_do_not_change_what_git_answers(
    skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = skill.parents[2]
    settings = "[status]\n\tshowUntrackedFiles = no\n[diff]\n\trelative = true\n"
    home.joinpath(".gitconfig").write_text(settings, "utf-8")
    monkeypatch.setenv("HOME", str(home))
    commit = commit_all(skill.parents[1])
    (skill / "references" / "v2.md").unlink()
    (skill / "new.md").write_text("new", "utf-8")

    assert [*gone_files(commit, skill)] == [skill / "references" / "v2.md"]
    assert is_dirty(skill / "new.md")
