"""A skill as it was at a git ref, where that is not what it is."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from pytest_upskill.formats.bundle import read_bundle
from pytest_upskill.formats.places import skill_folder
from pytest_upskill.formats.problems import BadFile
from pytest_upskill.formats.skill_md import read_skill_text
from pytest_upskill.git import extract, is_changed, merge_base
from pytest_upskill.skill import Skill, SkillVersion


def with_history(skill: Skill, ref: str) -> Skill:
    """Add to a skill what it was where the branch left ``ref``; the same in every process.

    Raises:
        GitError: Git cannot tell.
    """
    folder = skill_folder(skill.case_file).absolute()
    commit = merge_base(folder, ref)
    since = f"{ref} ({commit[:7]})"
    if not is_changed(commit, folder):
        return replace(skill, ref=ref, history=f"unchanged since {since}: not compared")
    with tempfile.TemporaryDirectory(prefix="pytest-upskill-") as temporary:
        if not extract(commit, folder, Path(temporary)):
            return replace(skill, ref=ref, history=f"new since {since}: not compared")
        try:
            before = _read(Path(temporary), folder.name)
        except (BadFile, OSError, UnicodeDecodeError):
            return replace(skill, ref=ref, history=f"no readable SKILL.md at {since}: not compared")
    if (before.name, before.text) == (skill.name, skill.text):
        return replace(skill, ref=ref, history=f"no text changed since {since}: not compared")
    return replace(skill, ref=ref, before=before)


def _read(folder: Path, name: str) -> SkillVersion:
    content = (folder / "SKILL.md").read_text("utf-8-sig")
    text = read_skill_text(content, folder=name)
    return SkillVersion(name=text.name, text=read_bundle(folder, text).text)
