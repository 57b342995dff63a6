"""One case of an evals file. Its keys decide how it is read, because formats mix them freely.

`reader.py` calls `read_case` for each entry of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeGuard

from pytest_upskill.cases.evals.assertions import Checks, Unsupported, checks_of, statements
from pytest_upskill.cases.evals.owner import Owner
from pytest_upskill.cases.evals.shapes import (
    AGENT_REASONS,
    ASSERTION_KEYS,
    DESCRIPTION_KEYS,
    OUTPUT_FILE_KEYS,
    PROMPT_KEYS,
    SEARCH_KEYS,
    STATEMENT_PREFIXES,
    WORKSPACE_KEYS,
    Entry,
)
from pytest_upskill.cases.evals.triggers import StatedChoice, choice_stated_by, expected_choice
from pytest_upskill.cases.skill import Case
from pytest_upskill.cases.source.document import BadFile, Document, JsonPath, Problem, shown
from pytest_upskill.cases.source.files import Unreadable
from pytest_upskill.cases.statements import MARK_KEY, with_marks
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.files import FileExists, ProcessCheck, WorkspaceFile, is_safe_name


class _AnswerChecks(NamedTuple):
    """What the assertions of a case say about the answer, and about the choice of a skill."""

    checks: Sequence[AnyCheck]
    choices: Sequence[tuple[str, StatedChoice]]
    """Each with the key of the case that has the assertion."""
    reasons: Sequence[str]
    """Why the case is skipped."""
    problems: Sequence[tuple[JsonPath, str]]
    """Mistakes, each with its path in the case."""


def read_case(
    entry: Entry,
    document: Document,
    *,
    name: str,
    owner: Owner | None,
    flaws: Sequence[Problem],
    requires_prompt: bool,
) -> Case:
    """Read one case.

    Three things keep a case from running. `flaws` and problems are mistakes in the file, which are
    all reported together. Reasons say what this package does not do, such as an unknown type of
    assertion: the case is skipped, and the first reason is shown, as one is enough to skip it.

    Args:
        entry: The case.
        document: The file that contains it.
        name: Its id.
        owner: The skill that it belongs to, if any.
        flaws: Flaws of the document inside the case.
        requires_prompt: Whether a case without a prompt is a mistake; if not, it is skipped.

    Raises:
        BadFile: The case has problems; it lists all of them.
    """
    path, value = entry
    if flaws:
        raise BadFile(flaws)
    if not isinstance(value, dict):
        raise BadFile([document.problem(path, f"must be an object, got {shown(value)}")])
    fields, prompt_is_object = merge_prompt_object(value)
    agent = agent_parts(fields, owner)
    answer = _read_answer_checks(fields)
    checks = [*answer.checks, *agent.checks]
    checks += _reference_statements(fields, no_other_checks=not checks)
    trigger, choice_skip_reasons = expected_choice(
        fields, answer.choices, owner, no_other_checks=not checks
    )
    reasons = [*agent.reasons, *answer.reasons, *choice_skip_reasons]
    if not checks and trigger is None:
        reasons.append(f"nothing to check: add {ASSERTION_KEYS[0]!r}")
    prompt = read_prompt(
        fields,
        is_needed=not reasons and trigger is None,
        may_be_missing=prompt_is_object or not requires_prompt,
    )
    problems = [*answer.problems, *filter(None, [prompt.problem])]
    if problems:
        raise BadFile(_problem(document, path, steps, what) for steps, what in problems)
    files, file_reasons = read_input_files(fields, owner)
    reasons += [*filter(None, [prompt.reason]), *file_reasons]
    tags = value.get("tags")
    case = Case(
        id=name,
        input=prompt.text,
        checks=tuple(checks),
        files=files,
        process=agent.process,
        workspace=agent.workspace,
        max_turns=agent.max_turns,
        tags=tuple(filter(is_text, tags)) if isinstance(tags, list) else (),
        skip=reasons[0] if reasons else None,
        trigger=trigger if prompt.text else None,
        line=document.line(path),
    )
    try:
        return with_marks(case, value.get(MARK_KEY))
    except ValueError as error:
        raise BadFile([document.problem((*path, MARK_KEY), str(error))]) from None


def _problem(document: Document, case: JsonPath, steps: JsonPath, what: str) -> Problem:
    """Make a problem of a part of a case, or of the case if the part has no place in the file."""
    path = (*case, *steps)
    return document.problem(path if path in document.offsets else case, what)


def _read_answer_checks(fields: Mapping[str, Any]) -> _AnswerChecks:
    """Read all assertions of a case."""
    checks: list[AnyCheck] = []
    choices: list[tuple[str, StatedChoice]] = []
    reasons: list[str] = []
    problems: list[tuple[JsonPath, str]] = []
    for key, steps, assertion in _assertions_of_case(fields):
        choice = choice_stated_by(assertion)
        if choice is not None:
            choices.append((key, choice))
            continue
        try:
            checks += checks_of(assertion)
        except Unsupported as error:
            reasons.append(f"{key}: {error}")
        except ValueError as error:
            problems.append(((key, *steps), str(error)))
    for key, prefix in STATEMENT_PREFIXES.items():
        texts = [text for _, text in _assertions(fields.get(key)) if isinstance(text, str)]
        checks += statements(texts, prefix=prefix)
    return _AnswerChecks(checks, choices, reasons, problems)


def _assertions_of_case(fields: Mapping[str, Any]) -> Iterator[tuple[str, JsonPath, object]]:
    """Yield each assertion with the key of the case that has it, and its path below the key."""
    for key, value in fields.items():
        is_reference = key in DESCRIPTION_KEYS and isinstance(value, str)
        if key in ASSERTION_KEYS and not is_reference:
            for steps, assertion in _assertions(value):
                yield key, steps, assertion
    for key, kind in SEARCH_KEYS.items():
        for steps, part in _assertions(fields.get(key)):
            yield key, steps, _search_assertion(part, kind)


def _assertions(value: object) -> Iterator[tuple[JsonPath, object]]:
    """Yield the assertions in a value, with their paths in it.

    Args:
        value: An assertion, a list of them, or an object that maps types to values.
    """
    if isinstance(value, list):
        yield from (((index,), assertion) for index, assertion in enumerate(value))
    elif isinstance(value, dict) and "type" not in value:
        yield from (((kind,), _typed_assertion(kind, part)) for kind, part in value.items())
    elif value is not None and not isinstance(value, bool):
        yield (), value


def _typed_assertion(kind: str, part: object) -> object:
    """Convert a type and its value to an assertion, with a text in case the type is unknown."""
    assertion = {"type": kind, "value": part}
    return assertion | {"text": f"{kind}: {part}"} if is_text(part) else assertion


def _search_assertion(part: object, kind: str) -> object:
    """Convert a text to search for, or an object that describes one, to an assertion.

    Args:
        part: The text or the object; any other value is returned as it is.
        kind: The type of the assertion, such as ``not_contains``.
    """
    if isinstance(part, str):
        return {"type": kind, "value": part}
    if isinstance(part, dict) and kind.startswith("not_"):
        return part | {"negate": True}
    return part


def _reference_statements(fields: Mapping[str, Any], *, no_other_checks: bool) -> Checks:
    """Make statements from the expected answer.

    Args:
        fields: The case.
        no_other_checks: Whether it has no other check; only then a description of the answer
            is used.
    """
    texts = [("The answer agrees with this reference: ", fields.get("ground_truth"))]
    if no_other_checks:
        texts += [("The answer fits this: ", fields.get(key)) for key in DESCRIPTION_KEYS]
    return [
        statement
        for prefix, text in texts
        if isinstance(text, str)
        for statement in statements([text], prefix=prefix)
    ]


_PROCESS: Mapping[str, Literal["read_file", "ran_script"]] = {
    "expected_script": "ran_script",
    "expected_references": "read_file",
}
_TURNS = range(1, 201)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """What a case asks of an agent."""

    checks: tuple[FileExists, ...]
    process: tuple[ProcessCheck, ...]
    workspace: tuple[WorkspaceFile, ...]
    max_turns: int | None
    reasons: tuple[str, ...]
    """Why the case cannot run, for each key that needs an agent and has a value of another kind."""


def agent_parts(value: Mapping[str, Any], owner: Owner | None) -> AgentParts:
    """Read the parts for an agent; keys whose values are of another kind are left alone.

    Args:
        value: The case.
        owner: The skill that it belongs to, if any.
    """
    checks = [
        (key, FileExists(file=file)) for key in OUTPUT_FILE_KEYS for file in _paths(value.get(key))
    ]
    process = [
        (key, ProcessCheck(name=name, file=file))
        for key, name in _PROCESS.items()
        for file in _paths(value.get(key))
    ]
    files, key_of_files = _workspace(value, owner)
    used = {key for key, _ in (*checks, *process)} | ({key_of_files} if files else set())
    turns = value.get("max_turns")
    return AgentParts(
        checks=tuple(check for _, check in checks),
        process=tuple(check for _, check in process),
        workspace=files,
        max_turns=turns if used and type(turns) is int and turns in _TURNS else None,
        reasons=tuple(
            AGENT_REASONS[key]
            for key, part in value.items()
            if part and key in AGENT_REASONS and key not in used
        ),
    )


def _paths(value: object) -> Iterator[str]:
    """Yield the names of files in a text or a list, nothing if one is no name of a file."""
    listed = value if isinstance(value, list) else [value]
    names = [each.get("path") if isinstance(each, dict) else each for each in listed]
    if all(isinstance(name, str) and is_safe_name(name.removeprefix("./")) for name in names):
        yield from (str(name).removeprefix("./") for name in names)


def _workspace(
    value: Mapping[str, Any], owner: Owner | None
) -> tuple[tuple[WorkspaceFile, ...], str]:
    """Return the files of a workspace, and the key that they come from."""
    for key, given in _workspaces(value):
        if isinstance(given, str) and owner:
            files = _read_folder(given, owner)
        else:
            files = tuple(_files_in_case(given))
            if isinstance(given, dict) and len(files) < len(given):
                continue
        if files and all(is_safe_name(file.name) for file in files):
            return files, key
    return (), ""


def _workspaces(value: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    yield from ((key, value.get(key)) for key in WORKSPACE_KEYS)
    setup = value.get("setup")
    if isinstance(setup, dict) and not setup.get("commands"):
        yield "setup", setup.get("files")


def _read_folder(given: str, owner: Owner) -> tuple[WorkspaceFile, ...]:
    """Return the files of a folder with their names in it, none if they cannot be read."""
    name = given.removeprefix("./").rstrip("/")
    try:
        found = owner.read_files(name)
    except (Unreadable, OSError):
        return ()
    return tuple(replace(file, name=file.name.removeprefix(f"{name}/")) for file in found)


_NO_PROMPT = f"no prompt: add {PROMPT_KEYS[0]!r}"


class Prompt(NamedTuple):
    """The prompt of a case; if it has none, either a reason to skip it or a mistake."""

    text: str = ""
    reason: str | None = None
    problem: tuple[JsonPath, str] | None = None


def merge_prompt_object(value: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Merge the keys of a prompt that is an object into its case.

    Returns:
        The keys of the case, and whether its prompt is an object.
    """
    key = next((key for key in PROMPT_KEYS if key in value), None)
    prompt = value[key] if key else None
    if not isinstance(prompt, dict):
        return value, False
    return prompt | {other: part for other, part in value.items() if other != key}, True


def read_prompt(fields: Mapping[str, Any], *, is_needed: bool, may_be_missing: bool) -> Prompt:
    """Read the prompt of a case, with its context.

    Args:
        fields: The case.
        is_needed: Whether the case needs a prompt, because it is neither skipped for another
            reason nor about the choice of a skill.
        may_be_missing: Whether a case that needs a prompt and has none is skipped; if not, that
            is a mistake.
    """
    key = next((key for key in PROMPT_KEYS if fields.get(key) is not None), None)
    prompt = fields.get(key) if key else None
    if is_text(prompt):
        context = fields.get("context")
        return Prompt(f"{context.strip()}\n\n{prompt}" if is_text(context) else prompt)
    if key and isinstance(prompt, list) and prompt:
        return Prompt(reason=f"{key}: a single answer has no further turns")
    if key and (is_needed or prompt != ""):
        return Prompt(problem=((key,), f"must be non-empty text, got {shown(prompt)}"))
    if is_needed and not may_be_missing:
        return Prompt(problem=((), _NO_PROMPT))
    return Prompt(reason=_NO_PROMPT)


def read_input_files(
    fields: Mapping[str, Any], owner: Owner | None
) -> tuple[tuple[WorkspaceFile, ...], Sequence[str]]:
    """Return the input files, and why the case is skipped if some cannot be read.

    Args:
        fields: The case.
        owner: The skill that it belongs to, if any; it may have the files.
    """
    context = fields.get("context")
    parts = context if isinstance(context, dict) else {"": context}
    reasons = [
        f"context: {key or shown(part)} is not sent: write it as text, or as 'files'"
        for key, part in parts.items()
        if part and key != "files" and not (key == "" and isinstance(part, str))
    ]
    files = [
        file
        for given in (parts.get("files"), fields.get("files"))
        for file in _files_in_case(given)
    ]
    if owner is not None:
        for name in _file_names(fields.get("files")):
            try:
                files += owner.read_files(name)
            except Unreadable as error:
                reasons.append(f"files: {error}")
    by_name = {file.name: file for file in files}
    return tuple(by_name.values()), reasons


def is_text(value: object) -> TypeGuard[str]:
    """Return whether a value is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def _file_names(files: object) -> list[str]:
    """Return the files that are given by name only."""
    listed = files if isinstance(files, list) else [files]
    return [name for name in listed if is_text(name)]


def _files_in_case(files: object) -> Iterator[WorkspaceFile]:
    """Yield the files that are given in the case itself."""
    if isinstance(files, dict):
        for name, text in files.items():
            if isinstance(text, str):
                yield WorkspaceFile(name=name, text=text)
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict) and isinstance(file.get("content"), str):
            name = str(file.get("path") or file.get("name") or "file")
            yield WorkspaceFile(name=name, text=file["content"])
