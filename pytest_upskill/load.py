"""Read a skill and its cases from disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any, TypeVar

from pytest_upskill.cases import read_cases
from pytest_upskill.frontmatter import read_skill_text
from pytest_upskill.positions import read_json
from pytest_upskill.problems import BadFile, Problem
from pytest_upskill.skill import Skill

MAX_MEGABYTES = 4
"""Size of a file in MiB beyond which it is refused."""

T = TypeVar("T")


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
    shown_text = str(shown_file.with_name("SKILL.md"))
    folder = case_file.absolute().parent
    lines: list[str] = []

    def attempt(read: Callable[[], T], path: str) -> T | None:
        try:
            return read()
        except BadFile as error:
            lines.extend(problem.at(path) for problem in error.problems)
        return None

    def read_schema(name: str) -> Any:
        return _read_schema(folder, name)

    text_file = folder / "SKILL.md"
    text = None
    if text_file.exists():
        text = attempt(lambda: read_skill_text(_text(text_file), folder=folder.name), shown_text)
    else:
        lines.append(
            f"{shown_file.parent}: no SKILL.md beside {case_file.name} "
            "(a skill is a folder with a SKILL.md)"
        )
    cases = attempt(lambda: read_cases(_text(case_file), read_schema=read_schema), str(shown_file))
    if text is None or cases is None:
        raise SkillError("\n".join(lines))
    return Skill(
        name=text.name,
        text=text.text,
        case_file=case_file,
        cases=cases[0],
        gate=cases[1],
        warnings=tuple(warning.at(shown_text) for warning in text.warnings),
    )


def _text(path: Path) -> str:
    """Read a text file in UTF-8, with or without a byte order mark.

    Raises:
        BadFile: It cannot be read.
    """
    limit = MAX_MEGABYTES << 20
    try:
        if path.exists() and not path.is_file():
            raise BadFile([Problem(what="is no file")])
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise BadFile([Problem(what=f"cannot be read: {error.strerror}")]) from None
    if len(content) > limit:
        what = f"is larger than {MAX_MEGABYTES} MiB: split it"
        raise BadFile([Problem(what=what)])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Without a byte order mark, as the error's offset does not count it.
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
