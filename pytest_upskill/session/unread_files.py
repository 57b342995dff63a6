"""Hints about files that look like cases and are not read."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.cases.hidden_files import has_shape_of_cases
from pytest_upskill.project.messages import listed, safe_line
from pytest_upskill.session.case_files import arguments_of, discovery_of, shown

_NAMES_OF_CASES = re.compile(
    r"case|eval|meta|trigger|routing|activation|behaviou?r|prompt|quer(y|ies)|scenario|benchmark|"
    r"test",
    re.IGNORECASE,
)
"""What the name of a file, or of one of the two folders above, may have in common with cases."""
_MOST_READ = 1000
"""How many files are searched for cases that nobody has asked for."""
_MOST_PATTERNS = 3
"""How many patterns the setting has that is offered."""


def lookalikes(unread: Collection[Path], config: pytest.Config) -> Iterator[str]:
    """Yield lines about files that look like cases, and how to read them.

    Args:
        unread: Files from which no cases are read.
        config: The session's; no setting can name what is outside its rootdir.
    """
    root = config.rootpath
    inside = {file: file.relative_to(root) for file in unread if file.is_relative_to(root)}
    named = [each for each in inside if _NAMES_OF_CASES.search("/".join(inside[each].parts[-3:]))]
    found = [file for file in named[:_MOST_READ] if has_shape_of_cases(file)]
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
            setting = f"upskill_case_files = {' '.join(patterns[:_MOST_PATTERNS])}"
            yield safe_line(f"files look like cases, {what}: {names}; {cure} {setting}")


def outside_arguments(collected: Collection[str], config: pytest.Config) -> Iterator[str]:
    """Yield which case files in the settings are of skills that run, but do not run themselves."""
    discovery, arguments = discovery_of(config), arguments_of(config)
    for file in (config.rootpath / name for name in discovery.patterns):
        runs = str(file) in collected or any(map(file.is_relative_to, arguments))
        owner = discovery.owning_skill(file) if file.is_file() and not runs else None
        if owner and any(map(owner.is_relative_to, arguments)):
            name = shown(file, config)
            yield safe_line(f"{name} has cases of {owner.name}: name it as an argument too")


def _pattern(file: Path) -> str:
    """Return a name, or the ending that it probably shares with others, as in ``*.cases.yaml``."""
    return f"*{''.join(file.suffixes)}" if file.suffixes[1:] else file.name
