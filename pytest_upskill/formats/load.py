"""Read a skill and its cases from disk."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
from stat import S_ISREG
from typing import Any

from pytest_upskill import CASE_FILE
from pytest_upskill.extensions import NO_EXTENSIONS, Extensions
from pytest_upskill.formats.bundle import read_bundle
from pytest_upskill.formats.places import skill_folder
from pytest_upskill.formats.positions import read_json
from pytest_upskill.formats.problems import BadFile, Problem
from pytest_upskill.formats.skill_files import read_files
from pytest_upskill.formats.skill_md import SkillText, read_skill_text
from pytest_upskill.formats.skill_meta import read_cases
from pytest_upskill.skill import Case, GateRule, Skill
from pytest_upskill.statements import without_triggers

MAX_BYTES = 1 << 20
"""Size of a file beyond which it is refused."""


class SkillError(Exception):
    """A skill that cannot be run; the message is every problem of its files, one a line."""


def load_skill(
    case_file: Path, *, shown: str | None = None, extensions: Extensions = NO_EXTENSIONS
) -> Skill:
    """Read a case file and the ``SKILL.md`` that it belongs to.

    Args:
        case_file: A ``skill_meta.json``, or an ``evals.json`` or its like; the ``SKILL.md`` itself,
            to have the skill without cases.
        shown: How messages write its path, such as relative to pytest's root; as given if None.
        extensions: What plugins add to the format.

    Raises:
        SkillError: With every problem of both files.
    """
    folder = skill_folder(case_file).absolute()
    told = partial(_told, case_file, folder, PurePath(shown or case_file))
    of_text: list[Problem] = []
    of_cases: list[Problem] = []
    text = SkillText(name=folder.name, text="", body_at=0, warnings=())
    with _noting(of_text):
        text = read_skill_text(_text(folder / "SKILL.md"), folder=folder.name)
    with _noting(of_cases):
        cases, gate, unread = _cases(case_file, folder, {text.name, folder.name}, extensions)
    if of_text or of_cases:
        raise SkillError("\n".join(told(of_text, of_cases)))
    bundle = read_bundle(folder, text)
    return Skill(
        name=text.name,
        text=bundle.text,
        case_file=case_file,
        cases=cases,
        gate=gate,
        warnings=tuple(told((*text.warnings, *bundle.warnings), unread)),
    )


def _told(
    case_file: Path,
    folder: Path,
    shown: PurePath,
    of_text: Sequence[Problem],
    of_cases: Sequence[Problem],
) -> list[str]:
    """Write what there is to say of a ``SKILL.md`` and of the cases, each with its path."""
    lines = [problem.at(str(shown)) for problem in of_cases]
    if not of_text:
        return lines
    if not (folder / "SKILL.md").exists():
        cure = "(a skill is a folder with a SKILL.md)"
        return [f"{shown.parent}: no SKILL.md beside {case_file.name} {cure}", *lines]
    to_skill = os.path.relpath(folder / "SKILL.md", case_file.absolute().parent)
    shown_text = os.path.normpath(shown.parent / to_skill)
    return [*(problem.at(shown_text) for problem in of_text), *lines]


def _cases(
    case_file: Path, folder: Path, skills: Collection[str], extensions: Extensions
) -> tuple[tuple[Case, ...], GateRule, Sequence[Problem]]:
    """Read a case file by the reader that its name asks for: cases, gate and warnings."""
    if case_file.name == "SKILL.md":
        return (), GateRule(), ()
    text = _text(case_file)
    if case_file.name == CASE_FILE:
        read_schema = partial(_read_schema, folder)
        cases, gate = read_cases(text, read_schema=read_schema, extensions=extensions)
        return cases, gate, () if cases else [Problem(what="holds no cases")]
    # Only here: most skills have no such file.
    from pytest_upskill.formats.evals import read_evals

    read = partial(read_files, folder, beside=case_file.absolute().parent)
    evals = read_evals(text, suffix=case_file.suffix, skills=skills, read_files=read)
    cases = tuple(without_triggers(case, skills) for case in evals.cases)
    return cases, GateRule(), evals.warnings


@contextmanager
def _noting(problems: list[Problem]) -> Iterator[None]:
    """Go on after a bad file, its problems noted."""
    try:
        yield
    except BadFile as error:
        problems += error.problems


def _text(path: Path) -> str:
    """Read a text file in UTF-8, with or without a byte order mark.

    Raises:
        BadFile: It cannot be read.
    """
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):
            raise BadFile([Problem(what="is no file")])
        if status.st_size > MAX_BYTES:
            raise BadFile([Problem(what=f"is larger than {MAX_BYTES >> 20} MiB: split it")])
        with path.open("rb") as file:
            content = file.read()
    except OSError as error:
        raise BadFile([Problem(what=f"cannot be read: {error.strerror}")]) from None
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
