"""Read a skill and its cases from disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from pytest_upskill.formats.positions import read_json
from pytest_upskill.formats.problems import BadFile, Problem
from pytest_upskill.formats.skill_md import read_skill_text
from pytest_upskill.formats.skill_meta import read_cases
from pytest_upskill.skill import Skill

MAX_BYTES = 1 << 20
"""Size of a file beyond which it is refused."""


class SkillError(Exception):
    """A skill that cannot be run; the message is every problem of its files, one a line."""


def load_skill(case_file: Path, *, shown: str | None = None) -> Skill:
    """Read a ``skill_meta.json`` and the ``SKILL.md`` beside it.

    Args:
        case_file: The file with the cases.
        shown: How messages write its path, such as relative to pytest's root; as given if None.

    Raises:
        SkillError: With every problem of both files.
    """
    shown_file = PurePath(shown or case_file)
    shown_text = shown_file.with_name("SKILL.md")
    folder = case_file.absolute().parent
    text_file = folder / "SKILL.md"
    lines: list[str] = []
    if text_file.exists():
        with _noting(lines, shown_text):
            text = read_skill_text(_text(text_file), folder=folder.name)
    else:
        cure = "(a skill is a folder with a SKILL.md)"
        lines.append(f"{shown_file.parent}: no SKILL.md beside {case_file.name} {cure}")
    with _noting(lines, shown_file):
        read_schema = partial(_read_schema, folder)
        cases, gate = read_cases(_text(case_file), read_schema=read_schema)
    if lines:
        raise SkillError("\n".join(lines))
    return Skill(
        name=text.name,
        text=text.text,
        case_file=case_file,
        cases=cases,
        gate=gate,
        warnings=tuple(warning.at(str(shown_text)) for warning in text.warnings),
    )


@contextmanager
def _noting(lines: list[str], shown: PurePath) -> Iterator[None]:
    """Go on after a bad file, its problems noted."""
    try:
        yield
    except BadFile as error:
        lines += [problem.at(str(shown)) for problem in error.problems]


def _text(path: Path) -> str:
    """Read a text file in UTF-8, with or without a byte order mark.

    Raises:
        BadFile: It cannot be read.
    """
    try:
        if path.exists() and not path.is_file():
            raise BadFile([Problem(what="is no file")])
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadFile([Problem(what=f"cannot be read: {error.strerror}")]) from None
    if len(content) > MAX_BYTES:
        raise BadFile([Problem(what=f"is larger than {MAX_BYTES >> 20} MiB: split it")])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A byte order mark is neither in the error's object nor in its offsets.
        before = error.object[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode()) + 1
        line = before.count(b"\n") + 1
        byte = f"byte {error.start} (0x{error.object[error.start]:02x})"
        what = f"{byte} is not UTF-8: save the file as UTF-8"
        raise BadFile([Problem(line=line, column=column, what=what)]) from None


def _read_schema(folder: Path, name: str) -> Any:
    """Read the JSON file ``name`` of a skill; raise ValueError with one line."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"{name!r} is outside the skill's folder: move it inside")
    try:
        return read_json(_text(path)).value
    except BadFile as error:
        raise ValueError(error.problems[0].at(name)) from None
