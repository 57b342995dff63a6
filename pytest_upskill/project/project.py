"""The folder of a project, so that all of its folders share recordings and baselines."""

from __future__ import annotations

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


def _is_submodule(folder: Path) -> bool:
    """Return whether a repository is a submodule: its data is in ``.git/modules`` of another."""
    try:
        return b"/modules/" in read_file(folder / ".git", MAX_TEXT_BYTES)
    except OSError:
        return False
