"""The files of a skill as they are installed for an agent: without anything that grades it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.formats.skill import Skill
from pytest_upskill.formats.skill_md.files import read_folder

_GRADING = re.compile(
    r"(.*/)?(skill_meta\.json|judge_labels\.json|evals?|evals?\.(json|jsonl|ya?ml)|benchmark\.json)|tests?/evals\..*"
    r"|(.*/)?(\.git|\.upskill|__pycache__|\.DS_Store)"
)
"""Names of files and folders that hold cases, or that no skill means to ship."""


class InstallError(Exception):
    """A skill whose folder cannot be installed for an agent; the message is one line."""


def with_files(skill: Skill) -> Skill:
    """Return a skill with the files of its folder, as an agent would find them installed.

    Case files, ``evals/`` and the workspaces of the cases are left out: they hold the answers.

    Raises:
        InstallError: The folder is too large, or a name in it is odd.
    """
    try:
        return replace(skill, files=read_skill_files(skill.folder, names_of_cases(skill)))
    except (OSError, ValueError) as error:
        raise InstallError(f"{skill.folder.name}: cannot be installed for an agent: {error}") from (
            None
        )


def read_skill_files(folder: Path, excluded: Iterable[str] = ()) -> tuple[WorkspaceFile, ...]:
    """Read the files of a skill that are installed.

    Args:
        folder: The skill's folder.
        excluded: Further names to leave out, relative to the folder.

    Raises:
        OSError: A file cannot be read.
        ValueError: The folder is too large, or a name in it is odd.
    """
    names = frozenset(excluded)
    return read_folder(
        folder, is_excluded=lambda name: name in names or bool(_GRADING.fullmatch(name))
    )


def names_of_cases(skill: Skill) -> set[str]:
    """Return the names of the case file and of what its cases refer to, inside the folder."""
    folder, beside = skill.folder.resolve(), skill.case_file.resolve().parent
    named = [skill.case_file.name]
    for case in skill.cases:
        if case.workspace_folder:
            named.append(case.workspace_folder)
        named += case.files
    return {
        path.relative_to(folder).as_posix()
        for path in (above / name for name in named for above in (beside, folder))
        if path.is_relative_to(folder) and path != folder
    }
