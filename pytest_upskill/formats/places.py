"""Where people keep cases: which skill a file is for, and whether a skill has any."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_upskill import CASE_FILE, EVALS_FILES

_EVALS_FOLDERS = ("evals", "eval", "tests", "benchmark")
"""Folders that hold the cases of what is beside them."""

_HOMES = ("skills", ".claude/skills", ".agents/skills")
"""Folders of skills, beside the folder with the cases of all."""

_SKILL_NAME = re.compile(r"""["']?skill(?:_name)?["']?\s*:\s*["']?([\w-]+)""")


def skill_folder(case_file: Path) -> Path:
    """Tell the folder of the skill that a case file belongs to.

    It is the file's own; of an evals file in ``evals/`` or its like, the one above; and where there
    is no skill either, as at the top of a plugin, the one of ``skills/`` that file or folder names.
    """
    folder = case_file.parent
    if case_file.name == CASE_FILE:
        return folder
    found = (folder for folder in _candidates(case_file) if (folder / "SKILL.md").exists())
    return next(found, folder.parent if folder.name in _EVALS_FOLDERS else folder)


def has_cases(folder: Path) -> bool:
    """Tell whether there is a file of cases, in any of its places, for the skill in a folder."""
    above = folder.parents[:3]
    places = [folder, *(folder / name for name in _EVALS_FOLDERS)]
    places += [top / name for top in above for name in _EVALS_FOLDERS]
    places += [top / name / folder.name for top in above for name in _EVALS_FOLDERS]
    if folder.name == "skill":
        places.append(folder.parent)
    files = (place / name for place in places for name in EVALS_FILES)
    return (folder / CASE_FILE).exists() or any(
        file.exists() and skill_folder(file) == folder for file in files
    )


def _candidates(case_file: Path) -> Iterator[Path]:
    """List where the skill of an evals file may be, the likeliest first."""
    folder = case_file.parent
    if folder.name in _EVALS_FOLDERS:
        top = folder.parent
        yield top
        yield folder
        if name := _SKILL_NAME.search(_head(case_file)):
            yield from (top / home / name[1] for home in _HOMES)
        yield top / "skill"
    elif folder.parent.name in _EVALS_FOLDERS:
        yield folder
        yield from (folder.parent.parent / home / folder.name for home in _HOMES)
    else:
        yield folder
        yield folder / "skill"


def _head(path: Path) -> str:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        return file.read(4096)
    return ""
