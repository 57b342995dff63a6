"""``--upskill-catalogue-update``: write the committed catalogue file, and run nothing."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pytest_upskill.cases.catalogue import Catalogue, Catalogues, write_catalogue
from pytest_upskill.project.messages import counted, safe_line
from pytest_upskill.session.collection.case_files import catalogue_file

_USAGE_ERROR = 4
"""Exit code of a usage error."""


def update_catalogue(config: pytest.Config) -> int:
    """Write the skills in and next to the named folders; return the exit code."""
    catalogues = Catalogues(root=config.rootpath)
    folders = [catalogues.folder(folder) for folder in _folders(config)]
    skills = [skill for folder in folders for skill in folder.catalogue.skills]
    catalogue = Catalogue.of(skills)
    file = catalogue_file(config)
    if not catalogue.skills:
        _print(f"ERROR: --upskill-catalogue-update: no skill in {', '.join(config.args)}: name one")
        return _USAGE_ERROR
    try:
        written = write_catalogue(file, catalogue)
    except OSError as error:
        _print(f"ERROR: --upskill-catalogue-update: {file}: {error.strerror}")
        return _USAGE_ERROR
    names = Counter(skill.name for skill in skills)
    for name in sorted(name for name, count in names.items() if count > 1):
        _print(f"upskill: several skills are called {name}: the first is listed")
    for reason in (reason for folder in folders for reason in folder.left_out):
        _print(f"upskill: not listed: {reason}")
    state = "written, commit it" if written else "is up to date"
    shown = os.path.relpath(file, config.invocation_params.dir)
    _print(f"upskill: catalogue of {counted(len(catalogue.skills), 'skill')}: {shown} {state}")
    return 0


def _folders(config: pytest.Config) -> list[Path]:
    """Return the folders that hold folders of skills, in and around the arguments."""
    folders = {
        skill.parent
        for argument in config.args
        for skill in _skills(config, Path(config.invocation_params.dir, argument.split("::")[0]))
    }
    return sorted(folders)


def _skills(config: pytest.Config, start: Path) -> Iterator[Path]:
    """Yield the folders of the skills below a folder, or of the one that a file belongs to."""
    start = start.absolute()
    if not start.is_dir():
        start = start.parent
    patterns = config.getini("norecursedirs")
    for folder, names, files in os.walk(start):
        # os.walk goes into the folders that remain in this list.
        names[:] = sorted(
            name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)
        )
        if "SKILL.md" in files:
            yield Path(folder)


def _print(line: str) -> None:
    sys.stdout.write(f"{safe_line(line)}\n")
