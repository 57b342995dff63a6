"""What a file of cases is, by its name, its place and its shape, and so what no model may see.

`discovery.py` searches for such files. The text of a skill, its installation for agents and the
inputs of cases leave them out, because they hold the answers.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath, PurePosixPath

from pytest_upskill import CASE_FILE, CASE_SUFFIXES, KEY_FILE, LABELS_FILE, STATE
from pytest_upskill.cases.adapters import registry
from pytest_upskill.cases.skill import HiddenFiles
from pytest_upskill.cases.skill_md import UNSPECIFIED, SkillText
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.project.files import real_name

CASE_FOLDERS = frozenset(
    {"evals", "eval", "evaluations", "tests", "test", "testing", "benchmark", "benchmarks"}
)
"""Names of folders that hold the cases of the skills beside them."""

CASE_SUBFOLDERS = re.compile(
    rf"(modes/[^/]+/|references/)?((({'|'.join(sorted(CASE_FOLDERS))})/)([^/]+/){{0,2}})?"
)
"""Folders inside a skill's folder that may hold its cases."""

CASE_FILE_PATTERNS = (
    *("*", "references/*", "references/*/*", "modes/*/*"),
    *(f"{name}/{deep}*" for name in sorted(CASE_FOLDERS) for deep in ("", "*/", "*/*/")),
)
"""Files that may hold cases of a skill, relative to its folder or to one above."""

_OF_CASES = frozenset({CASE_FILE, LABELS_FILE, KEY_FILE, "benchmark.json"})
"""Names of files that hold cases, or results of cases, and belong to no skill."""

_HIDDEN_FOLDER = re.compile(rf"evals|.+[-_]evals?|{re.escape(STATE)}")
"""Names of folders of which every file is hidden, wherever they are."""

_HIDDEN_AT_TOP = frozenset({"eval", "evaluations"})
"""The same, but only in the skill's folder itself: deeper, they may be a part of its scripts."""

_NEVER_SHIPPED = frozenset({".git", "__pycache__", ".DS_Store"})
"""Names of files and folders that no skill means to ship."""


def is_hidden_by_place(root: Path, name: str, hidden: HiddenFiles) -> bool:
    """Return whether the name or the place of a file says that it holds answers.

    Args:
        root: The folder in which the skill is read: its own, or one with an earlier version of it.
        name: The file's name, relative to ``root``.
        hidden: What is known of the skill's files.
    """
    return any(_is_hidden_name(each, hidden) for each in _names(root, name))


def is_named_or_shaped_as_cases(root: Path, name: str, hidden: HiddenFiles) -> bool:
    """Return whether a file has the name or the shape of a case file, wherever it is."""
    is_named = any(_is_named_as_cases(each, hidden) for each in _names(root, name))
    return is_named or has_shape_of_cases(root / name)


def may_be_installed(root: Path, name: str, hidden: HiddenFiles) -> bool:
    """Return whether a file or folder of the skill may be installed for agents."""
    is_part = name not in hidden.inputs and PurePosixPath(name).name not in _NEVER_SHIPPED
    is_hidden = is_hidden_by_place(root, name, hidden)
    return is_part and not (is_hidden or has_shape_of_cases(root / name))


def _is_hidden_name(name: str, hidden: HiddenFiles) -> bool:
    folders = PurePosixPath(name.casefold()).parts
    return (
        any(map(_HIDDEN_FOLDER.fullmatch, folders))
        or not _HIDDEN_AT_TOP.isdisjoint(folders[:1])
        or name in hidden.answers
        or _is_named_as_cases(name, hidden)
    )


def _is_named_as_cases(name: str, hidden: HiddenFiles) -> bool:
    """Return whether only files of cases, or of their results, have the name of a file."""
    path = PurePath(str(hidden.folder / name).casefold())
    patterns = (pattern.casefold() for pattern in hidden.patterns)
    return path.name in _OF_CASES or any(map(path.match, patterns)) or registry.is_certain(path)


def _names(root: Path, name: str) -> set[str]:
    """Return the names of a file: the given one, and the one without links and dots."""
    return {name, real_name(root / name, root)}


def has_shape_of_cases(path: Path) -> bool:
    """Return whether the text of a file is cases; a broken one in a place for cases is too."""
    # The last one that says what a file holds: an editor's copy is skill_meta.json.bak or ...json~.
    suffixes = (suffix.casefold().rstrip("~") for suffix in reversed(path.suffixes))
    suffix = next((suffix for suffix in suffixes if suffix in CASE_SUFFIXES), None)
    if suffix is None or not path.is_file():
        return False
    try:
        return registry.read(path, read_text(path), suffix=suffix, anywhere=True) is not None
    except BadFile:
        return bool(registry.adapters_at(path))


def without_cases(skill: SkillText, folder: Path) -> tuple[str, Sequence[re.Match[str]]]:
    """Return a ``SKILL.md`` without its cases, and the entries of the frontmatter that held them.

    Some authors keep the cases of a skill there.
    """
    text, reading = skill.text, None
    entries = [*UNSPECIFIED.finditer(text, 0, skill.body_at)]
    with suppress(BadFile):
        front, file = "".join(entry[0] for entry in entries), folder / "SKILL.md"
        reading = registry.read(file, front, suffix=".yaml", anywhere=True)
    if reading is None:
        return text, ()
    for entry in reversed(entries):
        text = text[: entry.start()] + text[entry.end() :]
    return text, entries
