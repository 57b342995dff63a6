"""One case of an evals file. Its keys decide how it is read, because formats mix them freely.

`reader.py` calls `read_case` for each entry of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_upskill.cases.evals.agent_parts import agent_parts
from pytest_upskill.cases.evals.assertions import checks_of, statements
from pytest_upskill.cases.evals.case_input import (
    is_text,
    merge_prompt_object,
    read_input_files,
    read_prompt,
)
from pytest_upskill.cases.evals.keys import (
    ASSERTION_KEYS,
    DESCRIPTION_KEYS,
    SEARCH_KEYS,
    STATEMENT_PREFIXES,
)
from pytest_upskill.cases.evals.owner import Owner
from pytest_upskill.cases.evals.shapes import Entry
from pytest_upskill.cases.evals.triggers import StatedChoice, choice_stated_by, expected_choice
from pytest_upskill.cases.evals.typed_checks import Checks, Unsupported
from pytest_upskill.cases.skill import Case
from pytest_upskill.cases.source.json import Document, JsonPath
from pytest_upskill.cases.source.problems import BadFile, Problem, shown
from pytest_upskill.cases.statement_marks import MARK_KEY, with_marks
from pytest_upskill.checks import AnyCheck


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
        workspace_folder=agent.folder,
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
