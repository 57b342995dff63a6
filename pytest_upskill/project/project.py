"""The folder of a project, so that all of its folders share recordings and baselines."""

from __future__ import annotations

from pathlib import Path

from pytest_upskill import STATE

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
        repository; else the root of the repository; else ``start``.
    """
    for folder in (start, *start.parents):
        if (folder / STATE).is_dir() or (folder / ".git").exists():
            return folder
    return start
