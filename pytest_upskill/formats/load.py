"""Read a skill and its cases from disk."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from pytest_upskill import CASE_FILE
from pytest_upskill.extensions import NO_EXTENSIONS, Extensions
from pytest_upskill.formats.bundle import read_bundle
from pytest_upskill.formats.evals import read_evals
from pytest_upskill.formats.positions import read_json
from pytest_upskill.formats.problems import BadFile, Problem
from pytest_upskill.formats.skill_files import read_files
from pytest_upskill.formats.skill_md import SkillText, read_skill_text
from pytest_upskill.formats.skill_meta import read_cases
from pytest_upskill.skill import Case, GateRule, Skill

_SKILL_NAME = re.compile(r"""["']?skill(?:_name)?["']?\s*:\s*["']?([\w-]+)""")

MAX_BYTES = 1 << 20
"""Size of a file beyond which it is refused."""


class SkillError(Exception):
    """A skill that cannot be run; the message is every problem of its files, one a line."""


def load_skill(
    case_file: Path, *, shown: str | None = None, extensions: Extensions = NO_EXTENSIONS
) -> Skill:
    """Read a case file and the ``SKILL.md`` that it belongs to.

    Args:
        case_file: A ``skill_meta.json``, or an ``evals.json`` or its like.
        shown: How messages write its path, such as relative to pytest's root; as given if None.
        extensions: What plugins add to the format.

    Raises:
        SkillError: With every problem of both files.
    """
    folder = skill_folder(case_file).absolute()
    shown_file = PurePath(shown or case_file)
    to_skill = os.path.relpath(folder, case_file.absolute().parent)
    shown_text = PurePath(os.path.normpath(shown_file.parent / to_skill / "SKILL.md"))
    lines: list[str] = []
    text = SkillText(name=folder.name, text="", body_at=0, warnings=())
    if (folder / "SKILL.md").exists():
        with _noting(lines, shown_text):
            text = read_skill_text(_text(folder / "SKILL.md"), folder=folder.name)
    else:
        cure = "(a skill is a folder with a SKILL.md)"
        lines.append(f"{shown_file.parent}: no SKILL.md beside {case_file.name} {cure}")
    with _noting(lines, shown_file):
        cases, gate, unread = _cases(case_file, folder, {text.name, folder.name}, extensions)
    if lines:
        raise SkillError("\n".join(lines))
    bundle = read_bundle(folder, text.text, body_at=text.body_at)
    return Skill(
        name=text.name,
        text=text.text.rstrip() + bundle.text if bundle.text else text.text,
        case_file=case_file,
        cases=cases,
        gate=gate,
        warnings=(
            *(warning.at(str(shown_text)) for warning in (*text.warnings, *bundle.warnings)),
            *(warning.at(str(shown_file)) for warning in unread),
        ),
    )


def skill_folder(case_file: Path) -> Path:
    """Tell the folder of the skill that a case file belongs to.

    It is the file's own; of an evals file in ``evals/``, the one above; and where there is no skill
    either, as at the top of a plugin, the one of ``skills/`` that the file names.
    """
    folder = case_file.parent
    if case_file.name == CASE_FILE or (folder / "SKILL.md").exists() or folder.name != "evals":
        return folder
    if not (folder.parent / "SKILL.md").exists() and (name := _SKILL_NAME.search(_head(case_file))):
        named = folder.parent / "skills" / name[1]
        return named if (named / "SKILL.md").exists() else folder.parent
    return folder.parent


def _head(path: Path) -> str:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        return file.read(4096)
    return ""


def _cases(
    case_file: Path, folder: Path, skills: Collection[str], extensions: Extensions
) -> tuple[tuple[Case, ...], GateRule, Sequence[Problem]]:
    """Read a case file by the reader that its name asks for: cases, gate and warnings."""
    text = _text(case_file)
    if case_file.name == CASE_FILE:
        read_schema = partial(_read_schema, folder)
        cases, gate = read_cases(text, read_schema=read_schema, extensions=extensions)
        return cases, gate, ()
    read = partial(read_files, folder, beside=case_file.absolute().parent)
    evals = read_evals(text, suffix=case_file.suffix, skills=skills, read_files=read)
    return evals.cases, GateRule(), evals.warnings


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
