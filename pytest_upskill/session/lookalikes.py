"""Hints about files that look like cases and are not read, with what would read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import pytest

from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.cases.hidden_files import has_shape_of_cases
from pytest_upskill.project.messages import safe_line
from pytest_upskill.session.case_files import shown

_NAMES_OF_CASES = re.compile(
    r"case|eval|meta|trigger|routing|activation|behaviou?r|prompt|quer(y|ies)|scenario|benchmark|"
    r"test",
    re.IGNORECASE,
)
"""What the name of a file, or of one of the two folders above, may have in common with cases."""

_MOST_READ = 1000
"""How many files are searched for cases that nobody has asked for."""

_MOST_PATTERNS = 3
"""How many patterns a hint has at most."""


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
    if of_skills:
        them = "it" if len(of_skills) == 1 else "them"
        patterns = " ".join(_patterns(of_skills, {*unread} - {*of_skills}))
        what = f"{_looks(of_skills, config)}: to read {them}, set upskill_case_files = {patterns}"
        yield safe_line(what)
    if of_none:
        pattern, *_ = _patterns(of_none, {*unread} - {*of_none})
        cure = f"add 'skill', or set upskill_case_files = {pattern}=FOLDER_OF_SKILL"
        them = "it" if len(of_none) == 1 else "them"
        yield safe_line(f"{_looks(of_none, config)}, but no skill is found for {them}: {cure}")


def _looks(files: Sequence[Path], config: pytest.Config) -> str:
    first = shown(files[0], config)
    return (
        f"{first} looks like cases"
        if len(files) == 1
        else f"{len(files)} files look like cases, such as {first}"
    )


def _patterns(files: Sequence[Path], others: Collection[Path]) -> Sequence[str]:
    """Return few patterns that match some files and none of the others.

    They are the names of the files, or what these or the folders have in common; the first few
    names if nothing else will do.
    """
    tried = [list(dict.fromkeys(map(pattern, files))) for pattern in _PATTERNS]
    for patterns in tried:
        is_exact = not any(file.match(each) for each in patterns for file in others)
        if len(patterns) <= _MOST_PATTERNS and is_exact:
            return patterns
    return tried[0][:_MOST_PATTERNS]


_ENDING = re.compile(r".+(?=[-_.][a-z]+\.\w+$)", re.IGNORECASE)

_PATTERNS: Sequence[Callable[[Path], str]] = (
    lambda file: f"*{''.join(file.suffixes)}" if file.suffixes[1:] else file.name,
    lambda file: _ENDING.sub("*", file.name),
    lambda file: f"{file.parent.name}/*{file.suffix}",
    lambda file: f"{file.parent.parent.name}/*/{file.name}",
    lambda file: f"{file.parent.parent.name}/*/*{file.suffix}",
)
"""The pattern for a file, from the narrowest kind to the widest."""
