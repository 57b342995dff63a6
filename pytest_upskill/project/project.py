"""The folder of a project, so that all of its folders share recordings and baselines."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from pytest_upskill import STATE
from pytest_upskill.project.files import MAX_TEXT_BYTES, read_file

CATALOGUE = "catalogue.json"
"""Name of the committed catalogue in it."""

RUNS = "runs"
"""Name of the folder of the history in it."""

DRAFTS = "drafts"
"""Name of the folder in it with a folder for each command of a teacher."""

ANSWERS = "answers.txt"
"""Name of the file in such a folder that lists its recordings by the starts of their digests."""

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
"""Files with settings of pytest, <https://docs.pytest.org/en/stable/reference/customize.html>."""


def project_folder(start: Path) -> Path:
    """Return the folder that contains ``.upskill``, or in which it will be created.

    Args:
        start: An absolute path in the project, such as pytest's rootdir.

    Returns:
        The nearest folder from ``start`` upwards that contains ``.upskill``, within the git
        repository and its superprojects; else the root of the repository; else ``start``.
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
    """Yield the files above the rootdir, up to the project's folder, that pytest ignored.

    Args:
        project: The folder from ``project_folder``.
        rootdir: Pytest's rootdir, which is the project's folder or below it.
        used: Settings and conftest files that pytest did read.

    Yields:
        Each ``conftest.py``, and each settings file that mentions this plugin.
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
    return "/modules/" in _text_of(link)


def _mentions_us(file: Path) -> bool:
    return "upskill_" in _text_of(file)


def _text_of(file: Path) -> str:
    try:
        return read_file(file, MAX_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
