"""Where case files, skills and catalogues are: by the ini file, from the rootdir, in node ids."""

import os
from pathlib import Path

import pytest

from pytest_upskill import STATE
from pytest_upskill.cases.catalogue import CatalogueError, Catalogues, read_catalogue
from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.project.files import CATALOGUE, project_folder
from pytest_upskill.session.options import path_of

_DISCOVERY = pytest.StashKey[CaseDiscovery]()
_CATALOGUES = pytest.StashKey[Catalogues]()


def discovery_of(config: pytest.Config) -> CaseDiscovery:
    """Return which files are case files according to the ini file; read once per session."""
    if _DISCOVERY not in config.stash:
        entries = [entry.partition("=") for entry in config.getini("upskill_case_files")]
        config.stash[_DISCOVERY] = CaseDiscovery(
            root=config.rootpath,
            patterns=tuple(pattern for pattern, _, _ in entries),
            owners=tuple((name, config.rootpath / skill) for name, _, skill in entries if skill),
        )
    return config.stash[_DISCOVERY]


def check_case_files(config: pytest.Config) -> None:
    """Check that the case files exist that the settings name.

    Raises:
        pytest.UsageError: No file has a name, unless it is a pattern.
    """
    for name in discovery_of(config).patterns:
        is_found = (config.rootpath / name).is_file() or Path(name).is_absolute()
        if not (is_found or {*"*?["} & {*name} or any(config.rootpath.rglob(name))):
            raise pytest.UsageError(
                f"upskill_case_files: no file is called {name!r}: correct the name, or remove it"
            )


def shown(path: Path, config: pytest.Config) -> str:
    """Return a path relative to the directory in which pytest was started."""
    return os.path.relpath(path, config.invocation_params.dir)


def arguments_of(config: pytest.Config) -> list[Path]:
    """Return the absolute paths of the command line's arguments, without the names of tests."""
    start = config.invocation_params.dir
    return [start / argument.partition("::")[0] for argument in config.args]


def path_from(root: Path, path: Path) -> str:
    """Return a path relative to a folder, also if it is not below the folder."""
    return os.path.relpath(path, root)


def project_of(config: pytest.Config) -> Path:
    """Return the project's folder.

    The rootdir can be above the git repository: an existing file after an option makes it so.
    """
    return project_folder(config.rootpath, *arguments_of(config))


def catalogue_file(config: pytest.Config) -> Path:
    """Return the path of the catalogue file, which may not exist."""
    return path_of(config, "catalogue") or project_of(config) / STATE / CATALOGUE


def catalogues_of(config: pytest.Config) -> Catalogues:
    """Return the catalogues of a session, read once: the committed one, if there is one.

    Raises:
        pytest.UsageError: The file is missing though it is named, or cannot be used.
    """
    if _CATALOGUES not in config.stash:
        file, committed = catalogue_file(config), None
        if file.exists():
            try:
                committed = read_catalogue(file)
            except CatalogueError as error:
                raise pytest.UsageError(str(error)) from None
        elif config.getini("upskill_catalogue"):
            raise pytest.UsageError(
                f"upskill_catalogue: there is no {file}: write it with --upskill-catalogue-update"
            )
        config.stash[_CATALOGUES] = Catalogues(committed=committed, file=file, root=config.rootpath)
    return config.stash[_CATALOGUES]
