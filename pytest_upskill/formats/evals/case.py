"""One case of an evals file. Its keys decide how it is read, because formats mix them freely."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from pytest_upskill.checks import AnyCheck
from pytest_upskill.formats.evals.agent_parts import agent_parts
from pytest_upskill.formats.evals.assertions import checks_of, statements
from pytest_upskill.formats.evals.keys import (
    ASSERTIONS,
    DESCRIPTIONS,
    PROMPTS,
    SEARCH_KEYS,
    STATEMENT_PREFIXES,
)
from pytest_upskill.formats.evals.owner import Owner
from pytest_upskill.formats.evals.triggers import Choice
from pytest_upskill.formats.evals.typed_checks import Checks, Unsupported
from pytest_upskill.formats.skill import Case, Trigger
from pytest_upskill.formats.skill_md.files import MAX_TOTAL_BYTES, Unreadable
from pytest_upskill.formats.source.json import Document, JsonPath
from pytest_upskill.formats.source.problems import BadFile, Problem, shown
from pytest_upskill.formats.statement_marks import MARK_KEY, with_marks

_NOTHING_ASKED = f"no prompt: add {PROMPTS[0]!r}"


def read_case(
    value: object,
    document: Document,
    path: JsonPath,
    *,
    name: str,
    owner: Owner | None,
    flaws: Mapping[JsonPath, Sequence[Problem]],
    must_ask: bool,
) -> Case:
    """Read one case.

    Args:
        value: The case.
        document: The file that contains it.
        path: Its path in the document.
        name: Its id.
        owner: The skill that it belongs to, if any.
        flaws: Flaws of the document, by the path of their case.
        must_ask: Whether a case without a question is an error; if not, it is skipped.

    Raises:
        BadFile: The case has problems; it lists all of them.
    """
    if path in flaws:
        raise BadFile(flaws[path])
    if not isinstance(value, dict):
        raise BadFile([document.problem(path, f"must be an object, got {shown(value)}")])
    merged = _merge_question_keys(value)
    reader = _Reader(merged, document, path, owner)
    # In this order: the checks find the trigger, without which a case must have a question.
    checks = reader.checks()
    question = reader.question(must_ask=must_ask and merged is value)
    files = reader.files()
    if reader.problems:
        raise BadFile(reader.problems)
    tags = value.get("tags")
    case = Case(
        id=name,
        input=question,
        checks=tuple(checks),
        files=files,
        process=reader.agent.process,
        workspace=reader.agent.workspace,
        workspace_folder=reader.agent.folder,
        max_turns=reader.agent.max_turns,
        tags=tuple(filter(_is_text, tags)) if isinstance(tags, list) else (),
        skip=next(iter(reader.reasons), None),
        trigger=reader.trigger if question else None,
        line=document.line(path),
    )
    try:
        return with_marks(case, value.get(MARK_KEY))
    except ValueError as error:
        raise BadFile([document.problem((*path, MARK_KEY), str(error))]) from None


def _merge_question_keys(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge the keys of a question that is an object into its case."""
    key = next((key for key in PROMPTS if key in value), None)
    inner = value[key] if key else None
    if not isinstance(inner, dict):
        return value
    return inner | {other: part for other, part in value.items() if other != key}


class _Reader:
    """Reader of the parts of a case, which collects problems and reasons to skip the case."""

    def __init__(
        self,
        value: Mapping[str, Any],
        document: Document,
        path: JsonPath,
        owner: Owner | None,
    ) -> None:
        self.value = value
        self.problems: list[Problem] = []
        self.agent = agent_parts(value, owner)
        self.choice = Choice(value)
        self.reasons = [*self.agent.reasons]
        self.trigger: Trigger | None = None
        self._owner = owner
        self._document = document
        self._path = path

    def question(self, *, must_ask: bool) -> str:
        """Return the question with its context, "" if there is none."""
        key = next((key for key in PROMPTS if self.value.get(key) is not None), None)
        asked = self.value.get(key) if key else None
        if _is_text(asked):
            context = self.value.get("context")
            return f"{context.strip()}\n\n{asked}" if _is_text(context) else asked
        if isinstance(asked, list) and asked:
            self.reasons.append(f"{key}: a single answer has no further turns")
        elif key and not (asked == "" and (self.reasons or self.trigger)):
            self._add_problem((key,), f"must be non-empty text, got {shown(asked)}")
        elif must_ask and not (self.reasons or self.trigger):
            self._add_problem((), _NOTHING_ASKED)
        else:
            self.reasons.append(_NOTHING_ASKED)
        return ""

    def checks(self) -> Sequence[AnyCheck]:
        """Return the checks of the answer."""
        checks: list[AnyCheck] = [
            check
            for key, value in self.value.items()
            if key in ASSERTIONS and not (key in DESCRIPTIONS and isinstance(value, str))
            for step, assertion in _assertions(value)
            for check in self._checks(assertion, (key, *step))
        ]
        for key, kind in SEARCH_KEYS.items():
            for step, part in _assertions(self.value.get(key)):
                checks += self._checks(_sought(part, kind), (key, *step))
        for key, prefix in STATEMENT_PREFIXES.items():
            texts = [text for _, text in _assertions(self.value.get(key)) if isinstance(text, str)]
            checks += statements(texts, prefix=prefix)
        checks += self.agent.checks
        checks += _references(self.value, alone=not checks)
        self.trigger = self.choice.trigger(self._owner, alone=not checks)
        self.reasons += self.choice.reasons
        if not checks and self.trigger is None:
            self.reasons.append(f"nothing to check: add {ASSERTIONS[0]!r}")
        return checks

    def files(self) -> Mapping[str, str]:
        """Return the input files, as text by name."""
        context = self.value.get("context")
        parts = context if isinstance(context, dict) else {"": context}
        self.reasons += [
            f"context: {key or shown(part)} is not sent: write it as text, or as 'files'"
            for key, part in parts.items()
            if part and key != "files" and not (key == "" and isinstance(part, str))
        ]
        given = parts.get("files"), self.value.get("files")
        files = {name: text for part in given for name, text in _files_by_name(part)}
        if self._owner is not None:
            for name in _file_names(self.value.get("files")):
                try:
                    files |= self._owner.read_files(name)
                except Unreadable as error:
                    self.reasons.append(f"files: {error}")
        if sum(len(text.encode()) for text in files.values()) > MAX_TOTAL_BYTES:
            self.reasons.append(f"files: over {MAX_TOTAL_BYTES >> 10} KiB in total")
        return files

    def _checks(self, assertion: object, path: JsonPath) -> Checks:
        if self.choice.take(assertion, path[0]):
            return ()
        try:
            return checks_of(assertion)
        except Unsupported as error:
            self.reasons.append(f"{path[0]}: {error}")
        except ValueError as error:
            self._add_problem(path, str(error))
        return ()

    def _add_problem(self, path: JsonPath, what: str) -> None:
        whole = (*self._path, *path)
        place = whole if whole in self._document.places else self._path
        self.problems.append(self._document.problem(place, what))


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def _assertions(value: object) -> Iterator[tuple[JsonPath, object]]:
    """Yield assertions with their paths, from one, a list, or an object of types and values."""
    if isinstance(value, list):
        yield from (((index,), assertion) for index, assertion in enumerate(value))
    elif isinstance(value, dict) and "type" not in value:
        yield from (((kind,), _entry(kind, part)) for kind, part in value.items())
    elif value is not None and not isinstance(value, bool):
        yield (), value


def _entry(kind: str, part: object) -> object:
    """Convert a type and its value to an assertion, with a text in case the type is unknown."""
    fallback = {"text": f"{kind}: {part}"} if _is_text(part) else {}
    return {"type": kind, "value": part, **fallback}


def _sought(part: object, kind: str) -> object:
    """Convert a text to search for, or an object that describes one, to an assertion."""
    if isinstance(part, dict):
        return part | {"negate": True} if kind.startswith("not_") else part
    return {"type": kind, "value": part} if isinstance(part, str) else part


def _references(value: Mapping[str, Any], *, alone: bool) -> Checks:
    """Make statements from the expected answer.

    Args:
        value: The case.
        alone: Whether there are no assertions; only then a description of the answer is used.
    """
    texts = [("The answer agrees with this reference: ", value.get("ground_truth"))]
    if alone:
        texts += [("The answer fits this: ", value.get(key)) for key in DESCRIPTIONS]
    return [
        statement
        for prefix, text in texts
        if isinstance(text, str)
        for statement in statements([text], prefix=prefix)
    ]


def _file_names(files: object) -> list[str]:
    """Return the files that are given by name only."""
    return [name for name in (files if isinstance(files, list) else [files]) if _is_text(name)]


def _files_by_name(files: object) -> Iterator[tuple[str, str]]:
    """Yield name and text of the files that are given in the case itself."""
    if isinstance(files, dict):
        yield from ((name, text) for name, text in files.items() if isinstance(text, str))
    elif isinstance(files, list):
        for file in files:
            if isinstance(file, dict) and isinstance(file.get("content"), str):
                yield str(file.get("path") or file.get("name") or "file"), file["content"]
