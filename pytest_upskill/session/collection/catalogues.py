"""What an agent would see of the skills: the committed catalogue, or the neighbours of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill import STATE
from pytest_upskill.formats.catalogue import Catalogues
from pytest_upskill.repository.project import CATALOGUE, project_folder

_CATALOGUES = pytest.StashKey[Catalogues]()


def catalogue_file(config: pytest.Config) -> Path:
    """Return the path of the catalogue file, which may not exist."""
    named = config.getini("upskill_catalogue")
    if named:
        return Path(config.rootpath, named)
    return project_folder(config.rootpath) / STATE / CATALOGUE


def catalogues_of(config: pytest.Config) -> Catalogues:
    """Return the catalogues of a session, read once: the committed one, if there is one.

    Raises:
        pytest.UsageError: The file is missing though it is named, or cannot be used.
    """
    if _CATALOGUES not in config.stash:
        config.stash[_CATALOGUES] = _read(config)
    return config.stash[_CATALOGUES]


def check_catalogue(config: pytest.Config) -> None:
    """Read the catalogue, so that a bad file ends the run before it begins.

    Raises:
        pytest.UsageError: The file is missing though it is named, or cannot be used.
    """
    catalogues_of(config)


def _read(config: pytest.Config) -> Catalogues:
    file = catalogue_file(config)
    if not file.exists():
        if config.getini("upskill_catalogue"):
            raise pytest.UsageError(
                f"upskill_catalogue: there is no {file}: write it with --upskill-catalogue-update"
            )
        return Catalogues(root=config.rootpath)
    # Imported here: most projects have no such file.
    from pytest_upskill.formats.catalogue import CatalogueError, read_catalogue

    try:
        return Catalogues(committed=read_catalogue(file), root=config.rootpath)
    except CatalogueError as error:
        raise pytest.UsageError(str(error)) from None
