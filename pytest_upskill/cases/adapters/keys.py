"""How the values of keys are read that several tools have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, Literal

from pytest_upskill.cases.adapters.adapter import Reader
from pytest_upskill.cases.adapters.choice import Choice, Unclear, choice_of, names_in
from pytest_upskill.cases.adapters.draft import NOTHING, Draft, Flaw, Note, Weight, as_list
from pytest_upskill.cases.source.document import shown
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.calls import CallOf, ToolCalled
from pytest_upskill.checks.files import FileExists, ProcessCheck, WorkspaceFile, is_safe_name

TURNS = range(1, 201)


def is_text(value: object) -> bool:
    """Return whether a value is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def _prompt(value: object) -> Draft:
    if isinstance(value, list):
        raise Flaw("a single answer has no further turns", Weight.LACKS)
    if not is_text(value):
        what = f"must be non-empty text, got {shown(value)}"
        return Draft(prompt=shown(value), notes=(Note(what, Weight.NO_QUESTION),))
    return Draft(prompt=str(value))


def _name(value: object) -> Draft:
    given = isinstance(value, str | int) and not isinstance(value, bool)
    return Draft(name=str(value)) if given else NOTHING


def _skills(value: object) -> Draft:
    names = tuple(dict.fromkeys(names_in(value)))
    if not names:
        raise Flaw("must be the name of a skill")
    return Draft(skills=names)


def _choice(value: object) -> Draft:
    try:
        return Draft(choice=choice_of(value))
    except Unclear as error:
        is_sentence = isinstance(value, str | list)
        raise Flaw(str(error), Weight.SKIPPED if is_sentence else Weight.MISTAKE) from None


def _should(value: object) -> Draft:
    # A key may be empty in every case of a file; alone it says that no skill should be chosen.
    if value in (None, "", []):
        return Draft(implied=Choice(nothing=True))
    return _choice(value)


def read_files(value: object) -> Draft:
    """Read input files: names; objects with the text of a file; or an object of names and texts."""
    names = tuple(name for name in as_list(value) if is_text(name))
    inline = ((name, text) for name, text, _ in _files(value) if is_safe_name(name))
    inputs = (WorkspaceFile(name=name, text=e) for name, e in inline if isinstance(e, str))
    return Draft(inputs=tuple(inputs), files=names)


def _workspace(value: object) -> Draft:
    """Read what an agent finds: names and texts, sources to copy, or the name of a folder."""
    if isinstance(value, str):
        return Draft(copies=(("", value),))
    inline, copies = [], []
    for name, text, source in _files(value):
        if isinstance(text, str) and is_safe_name(name):
            inline.append(WorkspaceFile(name=name, text=text))
        elif isinstance(source, str) and is_safe_name(name):
            copies.append((name, source))
        else:
            raise Flaw("its files cannot be read", Weight.LACKS)
    return Draft(workspace=tuple(inline), copies=tuple(copies))


def _files(value: object) -> Iterator[tuple[str, object, object]]:
    """Yield files: the name of each, its text, and else where it is."""
    if isinstance(value, dict):
        yield from ((name, text, None) for name, text in value.items())
        return
    for file in as_list(value):
        given = file if isinstance(file, dict) else {"source": file}
        source = given.get("source")
        own = PurePosixPath(str(source or "file")).name
        name = given.get("path") or given.get("name") or given.get("dest") or own
        yield str(name), given.get("content"), source


def _setup(value: object) -> Draft:
    if not isinstance(value, dict):
        value = {"commands": value}
    given = as_list(value.get("commands") or value.get("run"))
    commands = [each.get("run") if isinstance(each, dict) else each for each in given if each]
    unknown = next((key for key in value if key not in _SETUP and value[key]), None)
    if unknown or not all(map(is_text, commands)):
        raise Flaw(f"{unknown or 'commands'} is not known", Weight.LACKS)
    beside = Draft(copies=(("", "."),)) if value.get("copy_test_files") else NOTHING
    done = Draft(commands=tuple(map(str, commands)), git=bool(value.get("git")))
    return beside + WORKSPACE.read(value.get("files")) + done


_SETUP = frozenset({"commands", "copy_test_files", "files", "git", "run"})


def _turns(value: object) -> Draft:
    return Draft(max_turns=value) if type(value) is int and value in TURNS else NOTHING


def _paths(value: object, why: str) -> tuple[str, ...]:
    """Return the names of files in a text or a list."""
    names = [each.get("path") if isinstance(each, dict) else each for each in as_list(value)]
    plain = tuple(name.removeprefix("./") for name in names if isinstance(name, str))
    if len(plain) < len(names) or not all(map(is_safe_name, plain)):
        raise Flaw(why, Weight.SKIPPED)
    return plain


def _left(value: object) -> Iterable[AnyCheck]:
    paths = _paths(value, "a single answer leaves no files")
    return [FileExists(file=file) for file in paths]


def _process(name: Literal["read_file", "ran_script"], why: str) -> Callable[[Any], Draft]:
    return lambda value: Draft(
        process=tuple(ProcessCheck(name=name, file=file) for file in _paths(value, why))
    )


def _tools(least: int, most: int | None) -> Callable[[object], Iterable[AnyCheck]]:
    def read(value: object) -> Iterable[AnyCheck]:
        names = as_list(value)
        if not all(map(is_text, names)):
            raise Flaw("a single answer calls no tools", Weight.SKIPPED)
        calls = (CallOf(names=(name,)) for name in names)
        return [ToolCalled(calls=(each,), least=least, most=most) for each in calls]

    return read


PROMPT = Reader("the question", _prompt)
NAME = Reader("the name of the case", _name)
SKILL = Reader("the skill that the case runs with", _skills)
TAGS = Reader("words for `-k`", lambda value: Draft(tags=tuple(filter(is_text, as_list(value)))))
SHOULD = Reader("whether an agent should choose the skill, or which one", _should, reads_empty=True)
EXPECTED_SKILL = Reader(
    "the skill that an agent should choose; null for none", _choice, reads_empty=True
)
ACCEPTABLE = Reader(
    "skills that are right too", lambda e: Draft(choice=Choice(acceptable=tuple(names_in(e))))
)
FORBIDDEN = Reader(
    "skills that it should not choose", lambda e: Draft(choice=Choice(forbidden=tuple(names_in(e))))
)
FILES = Reader("files that are given with the question", read_files)
WORKSPACE = Reader("files that an agent finds: texts, or a folder", _workspace)
SETUP = Reader("files, and commands before an agent starts", _setup)
MAX_TURNS = Reader("most turns of an agent", _turns)
LEFT_FILES = Reader("files that an agent should leave", _left)
CALLED_TOOLS = Reader("tools that an agent should call", _tools(1, None))
REJECTED_TOOLS = Reader("tools that an agent should not call", _tools(0, 0))
RAN_SCRIPT = Reader(
    "scripts it should run", _process("ran_script", "a single answer runs no scripts")
)
OPENED_FILES = Reader(
    "files it should read", _process("read_file", "a single answer opens no files")
)


def unmeasured(why: str, weight: Weight = Weight.SKIPPED) -> Reader:
    """Return how a key is read that cannot be measured, or be given to a model."""
    done = "left out" if weight is Weight.LEFT_OUT else "skipped"

    def read(value: object) -> Draft:
        return Draft(notes=(Note(why, weight),)) if value else NOTHING

    return Reader(f"{done}: {why}", read)


def lacks(what: str) -> Reader:
    """Return how a key is read of what the author's tool gives: its case is skipped."""
    return unmeasured(f"a single answer has no {what}", Weight.LACKS)


FURTHER_TURNS = unmeasured("a single answer has no further turns")
