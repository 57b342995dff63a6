"""The version of a skill at a git ref, if it differs from the current one."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_upskill.cases.skill import Skill, SkillVersion
from pytest_upskill.cases.skill_md.bundle import installed_files, read_bundle
from pytest_upskill.cases.skill_md.frontmatter import read_skill_text
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.cases.source.problems import BadFile
from pytest_upskill.project.git import deleted_skills, extract, is_changed, starting_commit


def with_history(skill: Skill, ref: str, project: Path) -> Skill:
    """Return a skill with its version at the merge base with ``ref``, or why it has none.

    The result is the same in every process.

    Args:
        skill: The current skill.
        ref: A branch, tag or commit of the project's repository.
        project: The project's folder; the skill may be in a submodule below it.

    Raises:
        GitError: A git command fails.
    """
    folder, skill = skill.folder.absolute(), replace(skill, ref=ref)
    commit = starting_commit(folder, ref, project)
    if commit is None:
        return replace(skill, history=f"new since {ref}: not compared")
    since = f"{ref} ({commit[:7]})"
    if not is_changed(commit, folder):
        return replace(skill, history=f"unchanged since {since}: not compared")
    with tempfile.TemporaryDirectory(prefix="pytest-upskill-") as temporary:
        if not extract(commit, folder, Path(temporary)):
            deleted = deleted_skills(commit, folder)
            return replace(
                skill, history=_new_or_renamed(since, deleted), past_unknown=bool(deleted)
            )
        try:
            before = _read(Path(temporary), skill)
        except (BadFile, OSError, ValueError):
            history = f"not compared: its SKILL.md at {since} cannot be read"
            return replace(skill, history=history, past_unknown=True)
    if (before.name, before.text, before.files) == (skill.name, skill.text, skill.files):
        return replace(skill, history=f"no text changed since {since}: not compared")
    return replace(skill, before=before)


def _new_or_renamed(since: str, deleted: Sequence[str]) -> str:
    """Describe a skill that did not exist then, or may be one of ``deleted``, renamed."""
    if not deleted:
        return f"new since {since}: not compared"
    return (
        f"not compared: it did not exist at {since}, and {', '.join(deleted)} is gone: if it was "
        "renamed, keep its cases or most of its SKILL.md, so that git recognizes it"
    )


def _read(folder: Path, skill: Skill) -> SkillVersion:
    content = read_text(folder / "SKILL.md")
    text = read_skill_text(content, folder=skill.folder.absolute().name)
    return SkillVersion(
        name=text.name,
        text=read_bundle(folder, text, skill.hidden_files).text,
        files=installed_files(folder, skill.hidden_files) if skill.files else (),
        description=text.description,
    )
