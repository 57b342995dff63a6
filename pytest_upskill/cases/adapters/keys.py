"""How the values of keys are read that several tools have."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal

from pytest_upskill.cases.adapters import choice, make
from pytest_upskill.cases.adapters.adapter import Keys, Part, Reader, known, read_keys
from pytest_upskill.cases.adapters.draft import (
    NOTHING,
    Copied,
    Draft,
    Flaw,
    Note,
    Weight,
    an_object,
    as_list,
    left_out,
    merged,
    misspelled,
)
from pytest_upskill.cases.source.document import shown
from pytest_upskill.checks.files import ProcessCheck, WorkspaceFile, is_safe_name

_TURNS = range(1, 201)

_BLANKS_OF_SENTENCE = 4
"""Fewest blanks of a text that is a sentence, not a name."""


def is_text(value: object) -> bool:
    """Return whether a value is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def _prompt(value: object) -> Draft:
    if isinstance(value, str) and "{{.Vars." in value:
        raise Flaw("its variables are not filled in", Weight.LACKS)
    if is_text(value):
        return Draft(prompt=str(value))
    if isinstance(value, list):
        raise Flaw("a single answer has no further turns", Weight.LACKS)
    what = f"must be non-empty text, got {shown(value)}"
    return Draft(prompt=shown(value), notes=(Note(what, Weight.NO_QUESTION),))


def _name(value: object) -> Draft:
    given = isinstance(value, str | int) and not isinstance(value, bool)
    return Draft(name=str(value)) if given else NOTHING


def _skills(value: object) -> Draft:
    if not (names := choice.names_in(value)):
        raise Flaw("must be the name of a skill")
    return Draft(skills=tuple(dict.fromkeys(names)))


def expected_choice(value: object) -> choice.ExpectedChoice:
    """Return the choice that a value says: true, false, a word for them, or names of skills."""
    if isinstance(value, int) and value in {0, 1}:
        return choice.own_skill(should=bool(value))
    names = choice.names_in(value)
    if value and not names:
        raise Flaw("must be true, false or the name of a skill")
    if len(names) == 1 and (found := choice.meaning_of(names[0])):
        return found
    if sentence := next((each for each in names if each.count(" ") >= _BLANKS_OF_SENTENCE), None):
        what = f"{sentence[:40]!r} is not the name of a skill: write true, false or a name"
        raise Flaw(what, Weight.SKIPPED)
    return choice.skills_in(value) or choice.NO_SKILL


def all_of(value: object) -> Draft:
    """Read the skills of which an agent should choose all: just one can be measured."""
    if (count := len(choice.names_in(value))) > 1:
        raise Flaw(f"needs {count} skills, but one choice is measured", Weight.SKIPPED)
    return Draft(choice=expected_choice(value))


def _should(value: object) -> Draft:
    # A key may be empty in every case of a file; alone it says that no skill should be chosen.
    return Draft(choice=expected_choice(value)) if value not in (None, "", []) else _NO_SKILL


_NO_SKILL = Draft(implied=choice.NO_SKILL)


def files_in(
    value: object, *, keep_folders: bool = True, folder: str = ""
) -> tuple[WorkspaceFile | Copied, ...]:
    """Return files: names, objects with a text or a source, or an object of names and texts.

    Args:
        value: The files.
        keep_folders: Whether a file that is just a path has the whole path as its name.
        folder: The beginning of the path of each file that has no text.
    """
    if isinstance(value, dict):
        value = [{"path": name, "content": text} for name, text in value.items()]
    found: list[WorkspaceFile | Copied] = []
    for each in filter(None, as_list(value)):
        file = each if isinstance(each, dict) else {"source": each}
        source, text = file.get("source") or file.get("src"), file.get("content")
        own = source if keep_folders else PurePosixPath(str(source or "")).name
        name = str(file.get("path") or file.get("name") or file.get("dest") or own or "")
        if isinstance(text, str) and is_safe_name(name):
            found.append(WorkspaceFile(name=name, text=text))
        elif text is None and is_text(source or name):
            found.append(Copied(name, f"{folder}{source or name}"))
        else:
            raise Flaw("its files cannot be read", Weight.LACKS)
    return tuple(found)


def _workspace(value: object) -> Draft:
    if isinstance(value, str):
        return Draft(workspace=(Copied("", value),))
    if isinstance(value, dict) and {"path", "status"} & value.keys():  # about one folder
        return merged(_workspace(value.get("path") or []), commands_in(value.get("invocation")))
    return Draft(workspace=files_in(value, keep_folders=False))


def commands_in(value: object) -> Draft:
    """Read commands of the shell: texts, or objects with what to run."""
    given = [each.get("run") if isinstance(each, dict) else each for each in as_list(value) if each]
    if not all(map(is_text, given)):
        raise Flaw("commands is not known", Weight.LACKS)
    return Draft(commands=tuple(map(str, given)))


def _setup(value: object) -> Draft:
    given = value if isinstance(value, dict) else {"commands": value}
    if unknown := next((key for key in given if key not in _SETUP and given[key]), None):
        raise Flaw(f"{unknown} is not known", Weight.LACKS)
    beside = (Copied("", "."),) if make.is_on(given.get("copy_test_files")) else ()
    commands = commands_in(given.get("commands") or given.get("run"))
    setup = Draft(workspace=beside, git=make.is_on(given.get("git")))
    return merged(setup, commands, WORKSPACE.read(given.get("files")))


_SETUP = frozenset({"commands", "copy_test_files", "files", "git", "run"})


def _process(name: Literal["read_file", "ran_script"], value: object) -> Draft:
    files = map(make.file_name, make.texts_in(value))
    return Draft(process=tuple(ProcessCheck(name=name, file=file) for file in files))


def unmeasured(why: str, weight: Weight = Weight.SKIPPED) -> Reader:
    """Return how a key is read that cannot be measured, or be given to a model."""
    done = "left out" if weight in {Weight.LEFT_OUT, Weight.LIMIT} else "skipped"
    note = Draft(notes=(Note(why, weight),))
    return Reader(f"{done}: {why}", lambda value: note if make.is_on(value) else NOTHING)


def if_object(inner: Keys) -> Reader:
    """Return how an object is read by its own keys, where other files may have another value."""
    names = ", ".join(f"`{name}`" for name in inner)
    return Reader(
        f"an object with {names}",
        lambda value: read_keys(inner, value) if isinstance(value, dict) else NOTHING,
    )


def graders(
    meaning: str,
    types: Mapping[str, Callable[[make.Given], Part] | Keys | None],
    *,
    opposite: str = "",
    unless: Callable[[make.Given], str] = lambda _grader: "",
) -> Reader:
    """Return how a list of graders is read, each an object with a ``type``.

    Any other type is left out, unless it resembles one of these.

    Args:
        meaning: Which graders are read, for the documentation.
        types: Maps types, with blanks between them, to the keys of such a grader and of its
            ``config``, or to the function that reads it; None if it says nothing of an answer.
        opposite: What the type of a grader begins with that means the opposite, if the tool has
            any; functions find in ``negate`` whether it did, and the type without it.
        unless: Returns why a grader is left out whatever its type, "" if it is not.
    """
    readers = {kind: read for names, read in types.items() for kind in names.split()}

    def part_of(value: Any) -> Draft:
        if not isinstance(given := an_object(value).get("type"), str):
            raise Flaw(f"has no type: add 'type', such as {next(iter(readers))!r}")
        kind = given.removeprefix(opposite)
        if kind not in readers:
            if hint := misspelled(kind, readers):
                raise Flaw(f"unknown type {shown(kind)}{hint}")
            raise left_out(f"{kind}: {make.UNDECIDED}")
        if (read := readers[kind]) is None:
            return NOTHING
        grader = {"negate": kind != given, **an_object(value.get("config")), **value, "type": kind}
        if why := unless(grader):
            raise left_out(f"{kind}: {why}")
        draft = Reader("", read if callable(read) else partial(_of_keys, read)).read(grader)
        notes = (replace(note, what=f"{kind}: {note.what}", path=()) for note in draft.notes)
        return replace(draft, notes=tuple(notes))

    return Reader(meaning, part_of, as_list)


def _of_keys(keys: Keys, grader: make.Given) -> Draft:
    for key in grader:
        if key not in known(keys) and (hint := misspelled(key, known(keys))):
            raise Flaw(f"unknown key {shown(key)}{hint}")
    draft = read_keys(keys, grader)
    if not draft.expects:
        raise left_out("it has nothing that is read")
    return draft


PROMPT = Reader("the question", _prompt)
NAME = Reader("the name of the case", _name)
SKILL = Reader("the skill that the case runs with", _skills)
TAGS = Reader("words for `-k`", lambda value: Draft(tags=tuple(filter(is_text, as_list(value)))))
SHOULD = Reader("whether an agent should choose the skill, or which one", _should, reads_empty=True)
EXPECTED_SKILL = Reader(
    "the skills that an agent may choose; null for none",
    lambda value: Draft(choice=expected_choice(value)),
    reads_empty=True,
)
ALL_EXPECTED = Reader("the skill that an agent should choose", all_of)
DISABLED = unmeasured("the file disables it", Weight.LACKS)
ENABLED = Reader("skipped if false", lambda e: DISABLED.read(not make.is_on(e)), reads_empty=True)
ALSO_EXPECTED = Reader(
    "further skills that it may choose", lambda e: Draft(choice=choice.skills_in(e))
)
FORBIDDEN = Reader(
    "skills that it should not choose", lambda e: Draft(choice=choice.skills_in(e, are_right=False))
)
FILES = Reader("files that are given with the question", lambda e: Draft(files=files_in(e)))
WORKSPACE = Reader("files that an agent finds: texts, or a folder", _workspace)
SETUP = Reader("files, and commands before an agent starts", _setup)
MAX_TURNS = Reader(
    "most turns of an agent",
    lambda turns: Draft(max_turns=turns) if type(turns) is int and turns in _TURNS else NOTHING,
)
LEFT_FILES = Reader("files that an agent should leave", make.file_exists)
CALLED_TOOLS = Reader("tools that an agent should call", make.each_called)
REJECTED_TOOLS = Reader(
    "tools that an agent should not call", partial(make.each_called, least=0, most=0)
)
RAN_SCRIPT = Reader("scripts it should run", partial(_process, "ran_script"))
OPENED_FILES = Reader("files it should read", partial(_process, "read_file"))
FURTHER_TURNS = unmeasured("a single answer has no further turns", Weight.LACKS)
