"""What a file of cases is, by its name, its place and its shape, and so what no model may see.

`discovery.py` searches for such files. The text of a skill, its installation for agents and the
inputs of cases leave them out, because they hold the answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath

from pytest_upskill import CASE_FILES, CASE_SUFFIXES, LABELS_FILE, STATE
from pytest_upskill.cases.skill import HiddenFiles
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.files import read_text, start_of
from pytest_upskill.project.files import MAX_TEXT_BYTES, real_name

CASE_FOLDERS = frozenset(
    {"evals", "eval", "evaluations", "tests", "test", "testing", "benchmark", "benchmarks"}
)
"""Names of folders that hold the cases of the skills beside them."""

CASE_SUBFOLDERS = re.compile(
    rf"(modes/[^/]+/)?((({'|'.join(sorted(CASE_FOLDERS))})/)([^/]+/){{0,2}})?|references/"
)
"""Folders inside a skill's folder that may hold its cases."""

CASE_FILE_PATTERNS = (
    *("*", "references/*", "modes/*/*"),
    *(f"{name}/{deep}*" for name in sorted(CASE_FOLDERS) for deep in ("", "*/", "*/*/")),
)
"""Files that may hold cases of a skill, relative to its folder or to one above."""

POSSIBLE_NAME = (
    r"(cases|test[-_]prompts|triggers?([-_](tests?|cases|corpus|prompts|queries|set))?"
    r"|(.+[-_.])?evals?([-_]?(\d+|all|cases|full|queries|set))?)\.(jsonl?|ya?ml)"
)
_ONLY_OF_CASES = CASE_FILES | {LABELS_FILE, "benchmark.json"}
"""Names of files that hold cases or results of cases, and belong to no skill."""

_HIDDEN_FOLDERS = frozenset({"evals", STATE})
"""Folders of which every file is hidden, wherever they are."""

_HIDDEN_AT_TOP = frozenset({"eval", "evaluations"})
"""The same, but only in the skill's folder itself: deeper, they may be a part of its scripts."""

_NEVER_SHIPPED = frozenset({".git", "__pycache__", ".DS_Store"})
"""Names of files and folders that no skill means to ship."""


def is_case_name(path: PurePath, patterns: Iterable[str]) -> bool:
    """Return whether only case files have the name of a file, or the project lists it."""
    from pytest_upskill.cases.adapters import registry

    return (
        path.name in CASE_FILES or registry.is_certain(Path(path)) or any(map(path.match, patterns))
    )


def may_hold_cases(name: str) -> bool:
    """Return whether a file of this name may hold cases; files without cases may have it too."""
    from pytest_upskill.cases.adapters import registry

    return re.fullmatch(POSSIBLE_NAME, name, re.IGNORECASE) is not None or bool(
        registry.adapters_at(Path(name))
    )


_OLD = frozenset({".json", ".jsonl", ".yaml", ".yml"})


def contains_cases(path: Path, *, is_named: bool) -> bool:
    """Return whether cases with an expectation can be read from a file.

    Args:
        path: The file.
        is_named: Whether its name suggests cases; then less is enough.

    Raises:
        BadFile: It is not a file, too large, or has a syntax error.
    """
    # The last one that says what a file holds: an editor's copy is skill_meta.json.bak or ...json~.
    suffixes = (suffix.casefold().rstrip("~") for suffix in reversed(path.suffixes))
    suffix = next((suffix for suffix in suffixes if suffix in CASE_SUFFIXES), None)
    if suffix is None:
        return False
    # Imported late: slow, and most case files are recognized by their names.
    from pytest_upskill.cases.adapters import registry
    from pytest_upskill.cases.evals.reader import holds_cases

    if suffix == ".jsonl" and path.stat().st_size > MAX_TEXT_BYTES:
        # The reader refuses it and says so; the first lines can tell.
        text = start_of(path).rpartition("\n")[0]
    else:
        text = read_text(path)
    if registry.read(path, text, suffix=suffix) is not None:
        return True
    return suffix in _OLD and holds_cases(text, suffix=suffix, is_named=is_named)


def is_hidden(root: Path, name: str, hidden: HiddenFiles) -> bool:
    """Return whether no model may see a file, because it holds answers.

    Args:
        root: The folder in which the skill is read: its own, or one with an earlier version of it.
        name: The file's name, relative to ``root``.
        hidden: What is known of the skill's files.
    """
    return is_hidden_by_name(root, name, hidden) or has_shape_of_cases(root / name)


def is_hidden_by_name(root: Path, name: str, hidden: HiddenFiles) -> bool:
    """Return whether the name and the place of a file say that it holds answers."""
    return any(_is_hidden_name(each, hidden) for each in _names(root, name))


def reads_as_cases(root: Path, name: str, hidden: HiddenFiles) -> bool:
    """Return whether a file has the name or the shape of a case file, wherever it is."""
    return any(_is_case_name(each, hidden) for each in _names(root, name)) or (
        has_shape_of_cases(root / name)
    )


def is_installed(root: Path, name: str, hidden: HiddenFiles) -> bool:
    """Return whether a file or folder of the skill is installed for agents."""
    is_part = name not in hidden.inputs and PurePosixPath(name).name not in _NEVER_SHIPPED
    return is_part and not is_hidden(root, name, hidden)


def _is_hidden_name(name: str, hidden: HiddenFiles) -> bool:
    parts = PurePosixPath(name.casefold()).parts
    return (
        not _HIDDEN_FOLDERS.isdisjoint(parts)
        or not _HIDDEN_AT_TOP.isdisjoint(parts[:1])
        or name in hidden.answers
        or _is_case_name(name, hidden)
    )


def _is_case_name(name: str, hidden: HiddenFiles) -> bool:
    path = PurePath(str(hidden.folder / name).casefold())
    patterns = (pattern.casefold() for pattern in hidden.patterns)
    return path.name in _ONLY_OF_CASES or is_case_name(path, patterns)


def _names(root: Path, name: str) -> set[str]:
    """Return the names of a file: the given one, and the one without links and dots."""
    return {name, real_name(root / name, root)}


def has_shape_of_cases(path: Path) -> bool:
    """Return whether a file can be read as cases, or has such a name and cannot be read at all."""
    is_named = may_hold_cases(path.name)
    try:
        return path.is_file() and contains_cases(path, is_named=is_named)
    except BadFile:
        return is_named
