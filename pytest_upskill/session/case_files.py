"""Where case files, skills and catalogues are, and hints about files that only look like cases."""

import json
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pytest

from pytest_upskill import STATE
from pytest_upskill.cases.adapters.registry import adapters_at
from pytest_upskill.cases.catalogue import CatalogueError, Catalogues, read_catalogue
from pytest_upskill.cases.discovery import CaseDiscovery, skill_folders
from pytest_upskill.cases.hidden_files import has_shape_of_cases
from pytest_upskill.project.files import CATALOGUE, project_folder
from pytest_upskill.project.messages import did_you_mean, listed, safe_line
from pytest_upskill.session.options import path_of, usage_errors

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
    """Check that the case files and the skills exist that the settings name.

    Raises:
        pytest.UsageError: A skill is missing, or no file has a name, unless it is a pattern.
    """
    root = config.rootpath
    for entry in config.getini("upskill_case_files"):
        name, _, skill = entry.partition("=")
        if skill and not (root / skill / "SKILL.md").is_file():
            folders = [os.path.relpath(each, root) for each in skill_folders(root)]
            raise pytest.UsageError(
                f"upskill_case_files: no SKILL.md in {skill!r}{did_you_mean(skill, folders)}: "
                "write the path of a skill's folder"
            )
        is_found = (root / name).is_file() or Path(name).is_absolute()
        if not (is_found or {*"*?["} & {*name} or any(root.rglob(name))):
            raise pytest.UsageError(
                f"upskill_case_files: no file is called {name!r}: correct the name, or remove it"
            )


def shown(path: Path, config: pytest.Config) -> str:
    """Return a path relative to the directory in which pytest was started."""
    return os.path.relpath(path, config.invocation_params.dir)


def arguments_of(config: pytest.Config) -> list[Path]:
    """Return the absolute paths of the command line's arguments, without the names of tests."""
    return [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]


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
            with usage_errors(CatalogueError):
                committed = read_catalogue(file)
        elif config.getini("upskill_catalogue"):
            raise pytest.UsageError(
                f"upskill_catalogue: there is no {file}: write it with --upskill-catalogue-update"
            )
        config.stash[_CATALOGUES] = Catalogues(committed=committed, file=file, root=config.rootpath)
    return config.stash[_CATALOGUES]


_NAMES_OF_CASES = re.compile(
    r"case|eval|meta|trigger|routing|activation|behaviou?r|prompt|quer(y|ies)|scenario|benchmark|"
    r"test",
    re.IGNORECASE,
)
"""What the name of a file, or of one of the two folders above, may have in common with cases."""


def lookalikes(unread: Collection[Path], config: pytest.Config) -> Iterator[str]:
    """Yield lines about files that look like cases, and how to read them.

    Args:
        unread: Files from which no cases are read.
        config: The session's; no setting can name what is outside its rootdir.
    """
    root = config.rootpath
    inside = {file: file.relative_to(root) for file in unread if file.is_relative_to(root)}
    named = [
        each
        for each in inside
        if _NAMES_OF_CASES.search("/".join(inside[each].parts[-3:]))
        or (each.parent / "SKILL.md").exists()
        or adapters_at(each)
    ]
    found = [file for file in named[:1000] if has_shape_of_cases(file)]
    discovery = CaseDiscovery(root=root, patterns=("*",))  # as if a setting named them
    of_skills = [file for file in found if any(discovery.skills_of(file))]
    of_none = [file for file in found if file not in of_skills]
    for files, what, cure, skill in (
        (of_skills, "but are not read", "to read them, set", ""),
        (of_none, "but of no known skill", "add 'skill', or set", "=FOLDER_OF_SKILL"),
    ):
        if files:
            names = listed([shown(file, config) for file in files])
            patterns = list(dict.fromkeys(f"{_pattern(file)}{skill}" for file in files))
            is_toml = not config.inipath or config.inipath.suffix == ".toml"
            values = json.dumps(patterns[:3]) if is_toml else " ".join(patterns[:3])
            setting = f"upskill_case_files = {values}"
            yield safe_line(f"files look like cases, {what}: {names}; {cure} {setting}")


def outside_arguments(
    skills: Iterable[str], collected: Collection[Path], config: pytest.Config
) -> dict[str, list[str]]:
    """Return the case files that do not run though their skills do, by skill.

    Args:
        skills: The folders of the skills that pytest has visited.
        collected: The files that it has collected.
        config: The session's.
    """
    discovery, arguments = discovery_of(config), arguments_of(config)
    named = [file for name in discovery.patterns if (file := config.rootpath / name).is_file()]
    outside = defaultdict[str, list[str]](list)
    for skill in map(Path, skills):
        if any(map(skill.is_relative_to, arguments)):
            own = (file for file in named if discovery.owning_skill(file) == skill)
            for file in sorted({*discovery.case_files_above(skill), *own}):
                if not (file in collected or any(map(file.is_relative_to, arguments))):
                    outside[str(skill)].append(shown(file, config))
    return dict(outside)  # no worker can send another


def _pattern(file: Path) -> str:
    """Return a name, or the ending that it probably shares with others, as in ``*.cases.yaml``."""
    return f"*{''.join(file.suffixes)}" if file.suffixes[1:] else file.name
