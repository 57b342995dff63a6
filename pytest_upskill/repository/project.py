"""The folder of a project: recordings and baselines are the same from each of its folders."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

STATE = ".upskill"
"""Folder of recordings and baselines."""

CONFTEST = "conftest.py"
_INI_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
"""Where pytest looks for settings, <https://docs.pytest.org/en/stable/reference/customize.html>."""


def project_folder(start: Path) -> Path:
    """Find the folder that holds ``.upskill``, or is to hold it once there is something to keep.

    Args:
        start: An absolute path in the project, such as pytest's rootdir.

    Returns:
        The nearest folder from ``start`` upwards that holds ``.upskill``, within the git repository
        and those it is a submodule of; else the root of the repository; ``start`` where there is
        none.
    """
    repository = None
    for folder in (start, *start.parents):
        if (folder / STATE).is_dir():
            return folder
        if (folder / ".git").exists():
            repository = repository or folder
            if not _is_submodule(folder):
                break
    return repository or start


def unused_settings(project: Path, rootdir: Path, used: Collection[Path]) -> Iterator[Path]:
    """List the files between the project's folder and the rootdir that pytest passed over.

    Args:
        project: As ``project_folder`` finds it.
        rootdir: What pytest took for the root, in or below the project's folder.
        used: Settings and conftest files that pytest did read.

    Returns:
        Each ``conftest.py``, and each file of settings that mentions this plugin.
    """
    if rootdir == project:
        return
    for folder in rootdir.parents:
        for name in (CONFTEST, *_INI_FILES):
            file = folder / name
            if file.is_file() and file not in used and (name == CONFTEST or _mentions_us(file)):
                yield file
        if folder == project:
            return


def _is_submodule(folder: Path) -> bool:
    """Return whether a repository is a submodule: its data is in ``.git/modules`` of another."""
    link = folder / ".git"
    return link.is_file() and "/modules/" in link.read_text("utf-8", "replace")


def _mentions_us(file: Path) -> bool:
    return "upskill_" in file.read_text("utf-8", "replace")
