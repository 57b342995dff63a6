"""The vocabulary of adapters: types of fields, each of which reads a value as a part of a case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pytest_upskill.cases.adapters.adapter import NOTHING, Draft, Reads, merged
from pytest_upskill.cases.adapters.assertions import (
    alternatives,
    as_list,
    check,
    part_of,
    statements,
)
from pytest_upskill.cases.adapters.choice import Choice, Unclear, choice_of, names_in
from pytest_upskill.cases.source.document import shown
from pytest_upskill.checks.calls import CallOf, ToolCalled
from pytest_upskill.checks.files import FileExists, ProcessCheck, WorkspaceFile, is_safe_name

TURNS = range(1, 201)


def is_text(value: object) -> bool:
    """Return whether a value is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def _prompt(value: object) -> Draft:
    if isinstance(value, list) and value:
        return Draft(lacks=("a single answer has no further turns",))
    if value in (None, ""):
        return NOTHING
    if not is_text(value):
        raise ValueError(f"must be non-empty text, got {shown(value)}")
    return Draft(prompt=str(value))


def _name(value: object) -> Draft:
    given = isinstance(value, str | int) and not isinstance(value, bool)
    return Draft(name=str(value)) if given else NOTHING


def _skills(value: object) -> Draft:
    names = tuple(dict.fromkeys(names_in(value)))
    if value and not names:
        return Draft(skips=("must be the name of a skill",))
    return Draft(skills=names)


def _tags(value: object) -> Draft:
    return Draft(tags=tuple(filter(is_text, value))) if isinstance(value, list) else NOTHING


def _chosen(value: object) -> Draft:
    try:
        return Draft(choice=choice_of(value))
    except Unclear as error:
        return Draft(skips=(str(error),))


def _should(value: object) -> Draft:
    # A key may be empty in every case of a file; alone it says that no skill should be chosen.
    if value in (None, "", []):
        return Draft(implied=Choice(nothing=True))
    return _chosen(value)


def _acceptable(value: object) -> Draft:
    return Draft(choice=Choice(acceptable=tuple(names_in(value))))


def _forbidden(value: object) -> Draft:
    return Draft(choice=Choice(forbidden=tuple(names_in(value))))


def read_files(value: object) -> Draft:
    """Read input files: names; objects with the text of a file; or an object of names and texts."""
    inline = tuple(_inline(value))
    listed = value if isinstance(value, list) else [value]
    names = tuple(name for name in listed if isinstance(name, str) and name.strip())
    return Draft(inputs=inline, files=names)


def read_workspace(value: object) -> Draft:
    """Read what an agent finds: names and texts, sources to copy, or the name of a folder."""
    if not value:
        return NOTHING
    copies = [("", value)] if isinstance(value, str) else list(_copies(value))
    inline = tuple(_inline(value))
    count = len(value) if isinstance(value, dict | list) else 1
    if len(inline) + len(copies) < count:
        return Draft(lacks=("its files cannot be read",))
    return Draft(workspace=inline, copies=tuple(copies))


def _inline(value: object) -> Iterator[WorkspaceFile]:
    """Yield the files whose text is in the case."""
    if isinstance(value, dict):
        for name, text in value.items():
            if isinstance(text, str) and is_safe_name(name):
                yield WorkspaceFile(name=name, text=text)
    for file in value if isinstance(value, list) else ():
        if isinstance(file, dict) and isinstance(file.get("content"), str):
            name = str(file.get("path") or file.get("name") or "file")
            if is_safe_name(name):
                yield WorkspaceFile(name=name, text=file["content"])


def _copies(value: object) -> Iterator[tuple[str, str]]:
    """Yield files to copy: their names in the workspace, and where they are."""
    for file in value if isinstance(value, list) else ():
        if isinstance(file, str):
            yield PurePosixPath(file).name, file
        elif isinstance(file, dict) and isinstance(file.get("source"), str):
            name = str(file.get("path") or file.get("dest") or PurePosixPath(file["source"]).name)
            if is_safe_name(name):
                yield name, file["source"]


def read_setup(value: object) -> Draft:
    """Read what is done before an agent starts: files, and commands of the shell."""
    if isinstance(value, str | list):
        value = {"commands": value}
    if not isinstance(value, dict):
        return NOTHING
    given = value.get("commands") or value.get("run") or []
    commands = [
        each.get("run") if isinstance(each, dict) else each
        for each in (given if isinstance(given, list) else [given])
    ]
    unknown = next((key for key in value if key not in _SETUP and value[key]), None)
    if unknown or not all(map(is_text, commands)):
        return Draft(lacks=(f"{unknown or 'commands'} is not known",))
    beside = Draft(copies=(("", "."),)) if value.get("copy_test_files") else NOTHING
    done = Draft(commands=tuple(map(str, commands)), git=bool(value.get("git")))
    return beside + read_workspace(value.get("files")) + done


_SETUP = frozenset({"commands", "copy_test_files", "files", "git", "run"})


def _turns(value: object) -> Draft:
    return Draft(max_turns=value) if type(value) is int and value in TURNS else NOTHING


def paths_in(value: object) -> tuple[str, ...]:
    """Return the names of files in a text or a list, none if one is no name of a file."""
    listed = value if isinstance(value, list) else [value]
    names = [each.get("path") if isinstance(each, dict) else each for each in listed]
    plain = tuple(name.removeprefix("./") for name in names if isinstance(name, str))
    return plain if len(plain) == len(names) and all(map(is_safe_name, plain)) else ()


def _left(value: object) -> Draft:
    if value and not paths_in(value):
        return Draft(skips=("a single answer leaves no files",))
    return Draft(checks=tuple(FileExists(file=file) for file in paths_in(value)))


def _process(name: Literal["read_file", "ran_script"], why: str) -> Callable[[Any], Draft]:
    def read(value: object) -> Draft:
        if value and not paths_in(value):
            return Draft(skips=(why,))
        return Draft(process=tuple(ProcessCheck(name=name, file=file) for file in paths_in(value)))

    return read


def _tools(least: int, most: int | None) -> Callable[[object], Draft]:
    def read(value: object) -> Draft:
        names = value if isinstance(value, list) else [value]
        if not all(map(is_text, names)):
            return Draft(skips=("a single answer calls no tools",)) if value else NOTHING
        calls = (CallOf(names=(str(name),)) for name in names)
        return Draft(checks=tuple(ToolCalled(calls=(e,), least=least, most=most) for e in calls))

    return read


Prompt = Annotated[Draft, Reads(_prompt, "the question")]
Name = Annotated[Draft, Reads(_name, "the name of the case")]
Skill = Annotated[Draft, Reads(_skills, "the skill that the case runs with")]
Tags = Annotated[Draft, Reads(_tags, "words for `-k`")]
Should = Annotated[Draft, Reads(_should, "whether an agent should choose the skill, or which one")]
Expected = Annotated[Draft, Reads(_chosen, "the skill that an agent should choose; null for none")]
Acceptable = Annotated[Draft, Reads(_acceptable, "skills that are right too")]
Forbidden = Annotated[Draft, Reads(_forbidden, "skills that it should not choose")]
Files = Annotated[Draft, Reads(read_files, "files that are given with the question")]
Workspace = Annotated[Draft, Reads(read_workspace, "files that an agent finds: texts, or a folder")]
CalledTools = Annotated[Draft, Reads(_tools(1, None), "tools that an agent should call")]
RejectedTools = Annotated[Draft, Reads(_tools(0, 0), "tools that an agent should not call")]
Setup = Annotated[Draft, Reads(read_setup, "files, and commands before an agent starts")]
MaxTurns = Annotated[Draft, Reads(_turns, "most turns of an agent")]
LeftFiles = Annotated[Draft, Reads(_left, "files that an agent should leave")]
RanScript = Annotated[
    Draft, Reads(_process("ran_script", "a single answer runs no scripts"), "scripts it should run")
]
OpenedFiles = Annotated[
    Draft, Reads(_process("read_file", "a single answer opens no files"), "files it should read")
]
Assertions = Annotated[
    tuple[Draft, ...], Reads(part_of, "assertions: texts or objects", listed=as_list)
]


def Stated(prefix: str) -> Reads:  # noqa: N802  like a type
    """Mark a field of texts that become statements with a prefix, or of patterns."""
    return _texts(prefix, "regex")


_DENIED = re.compile(
    r"(?:(?:the )?(?:answer|agent|assistant|model|response|skill|it) )?"
    r"(?:(?:do|does|must|should|shall|will|is|are|may)(?: not|n't)|never|no|not|avoids?|without)\b",
    re.IGNORECASE,
)


def NotStated(prefix: str) -> Reads:  # noqa: N802  like a type
    """Mark a field of texts that an answer must not satisfy; some deny it themselves."""
    return _texts(prefix, "not_regex", is_stated=lambda text: _DENIED.match(text) is not None)


def _texts(prefix: str, kind: str, is_stated: Callable[[str], bool] = lambda _text: False) -> Reads:
    def read(text: object) -> Draft:
        if not isinstance(text, str):
            return NOTHING
        if pattern := alternatives(text.strip()):
            return check(kind, pattern)
        return statements(text, prefix="" if is_stated(text) else prefix)

    return Reads(
        lambda texts: merged(map(read, as_list(texts))), f"“{prefix.strip()} …”, or a pattern `a|b`"
    )


def Searched(kind: str) -> Reads:  # noqa: N802  like a type
    """Mark a field of texts to search for, by a type of assertion, or of objects with types."""

    def read(part: object) -> Draft:
        if isinstance(part, str):
            return check(kind, part)
        if isinstance(part, dict) and kind.startswith("not_"):
            return part_of(part | {"negate": True})
        return part_of(part)

    return Reads(read, f"`{kind}`", listed=as_list)


def NeedsAgent(why: str) -> Reads:  # noqa: N802  like a type
    """Mark a field of an expectation that no answer can meet: a case that has it is skipped."""
    reason = f"a single answer {why}"
    read = lambda value: Draft(skips=(reason,)) if value else NOTHING  # noqa: E731
    return Reads(read, f"skipped: {reason}")


def Lacks(what: str) -> Reads:  # noqa: N802  like a type
    """Mark a field of what the author's tool gives: a case that has it is skipped."""
    reason = f"a single answer has no {what}"
    read = lambda value: Draft(lacks=(reason,)) if value else NOTHING  # noqa: E731
    return Reads(read, f"skipped: {reason}")
