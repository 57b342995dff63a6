"""One case of an evals file, told by its keys: families share them freely."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from pytest_upskill.formats.assertions import Checks, Unsupported, checks_of, statements
from pytest_upskill.formats.positions import Document, JsonPath
from pytest_upskill.formats.problems import BadFile, Problem, shown
from pytest_upskill.formats.skill_files import MAX_TOTAL_BYTES, OutsideError, Unreadable
from pytest_upskill.skill import Case

PROMPTS = ("prompt", "input", "question", "query", "task", "instruction", "user_request")
"""Keys of what a model is asked; the first that is there counts."""

NAMES = ("id", "name", "eval_name", "slug", "title")
"""Keys of what a case is called."""

_DESCRIPTIONS = ("expected_output", "expected", "expect")
"""Keys that hold assertions too, unless they are text."""
_ASSERTIONS = (
    "assertions",
    "assert",
    "expectations",
    "expected_behavior",
    "expected_behaviors",
    "anti_expectations",
    "checks",
    "acceptance",
    "acceptance_criteria",
    "rubric",
    "criteria",
    "must_have",
    *_DESCRIPTIONS,
)
_STATED: Mapping[str, str] = {
    "must_include": "The answer includes this: ",
    "must_not_include": "The answer does not include this: ",
    "expected_output_characteristics": "The answer has this: ",
    **dict.fromkeys(
        ("must_not", "must_not_have", "failure_conditions"), "The answer does not do this: "
    ),
}
"""Keys of what is no statement by itself, and how it becomes one."""

_SOUGHT: Mapping[str, str] = {
    "must_contain": "contains",
    "expected_output_contains": "contains",
    "must_not_contain": "not_contains",
    "required_regex": "regex",
    "forbidden_regex": "not_regex",
}
"""Keys of texts that are looked for, and the type of assertion that each of them is."""

_TRIGGERS = (
    "should_trigger",
    "should_activate",
    "should_fire",
    "expected_activation",
    "must_not_activate",
)
_SKILLS = ("expected_skill", "expected_activation")
_CHOSEN = "the skill is always in context, nobody chooses it"

_FEATURES: Mapping[str, str] = {
    key: f"{key}: a single answer {why}"
    for keys, why in (
        ("expected_script expected_test cmd", "runs no scripts"),
        ("expected_references", "opens no files"),
        ("expected_files expected_artifacts required_artifacts output_files", "leaves no files"),
        ("deterministic_assertions validators graders setup", "leaves commands nothing to look at"),
        (
            "tool_assertions expected_tool expected_tools expect_tools reject_tools tools",
            "calls no tools",
        ),
        (
            "turns messages conversation query_flow prompt_sequence steps history",
            "has no further turns",
        ),
        ("workspace fixture fixtures environment", "has no workspace"),
    )
    for key in keys.split()
}
"""Keys of what needs an agent, and why; an empty value needs nothing."""

READ = {
    *(*PROMPTS, *NAMES, *_ASSERTIONS, *_STATED, *_SOUGHT, *_TRIGGERS, *_SKILLS),
    *("ground_truth", "acceptable_skills", "files", "context", "tags"),
    *_FEATURES,
}
"""Keys that count for something."""

ReadFiles = Callable[[str], Mapping[str, str]]
"""Reads a file, or the files of a folder; raises OutsideError or Unreadable."""


def read_case(
    value: Mapping[str, Any],
    document: Document,
    path: JsonPath,
    *,
    name: str,
    skills: Collection[str],
    read_files: ReadFiles,
) -> Case:
    """Read one case.

    Args:
        value: What the case says.
        document: The file that it is in.
        path: Where it stands there.
        name: What the case is called here.
        skills: Names of the skill that the case belongs to.
        read_files: Reads the input files.

    Raises:
        BadFile: With every problem of the case.
    """
    reader = _Reader(value, document, path, skills)
    question, checks, files = reader.question(), reader.checks(), reader.files(read_files)
    if reader.problems:
        raise BadFile(reader.problems)
    tags = value.get("tags")
    return Case(
        id=name,
        input=question,
        checks=tuple(checks),
        files=files,
        tags=tuple(filter(_is_text, tags)) if isinstance(tags, list) else (),
        skip=next(iter(reader.reasons), None),
        line=document.line(path),
    )


class _Reader:
    """Reads the parts of a case, noting what is wrong and what only an agent could do."""

    def __init__(
        self,
        value: Mapping[str, Any],
        document: Document,
        path: JsonPath,
        skills: Collection[str],
    ) -> None:
        self.value = value
        self.problems: list[Problem] = []
        self.reasons = list(_features(value, skills))
        self._document = document
        self._path = path

    def question(self) -> str:
        """Read what a model is asked."""
        key = next((key for key in PROMPTS if key in self.value), None)
        if key is None:
            if not self.reasons:
                self._note((), f"nothing to ask: add {PROMPTS[0]!r}")
            return ""
        if not _is_text(self.value[key]):
            if self.value[key] == "" and self.reasons:
                return ""
            self._note((key,), f"must be text that asks something, got {shown(self.value[key])}")
            return ""
        return str(self.value[key])

    def checks(self) -> Checks:
        """Read what must hold of the answer."""
        checks = [
            check
            for key, value in self.value.items()
            if key in _ASSERTIONS and not (key in _DESCRIPTIONS and isinstance(value, str))
            for step, assertion in _assertions(value)
            for check in self._checks(assertion, (key, *step))
        ]
        for key, kind in _SOUGHT.items():
            for step, part in _assertions(self.value.get(key)):
                checks += self._checks(_sought(part, kind), (key, *step))
        for key, prefix in _STATED.items():
            texts = [text for _, text in _assertions(self.value.get(key)) if isinstance(text, str)]
            checks += statements(texts, prefix=prefix)
        checks += _references(self.value, alone=not checks)
        if not checks:
            self.reasons += _nothing(self.value)
        return checks

    def files(self, read_files: ReadFiles) -> Mapping[str, str]:
        """Read what is sent along: files by name, or with their text."""
        context = self.value.get("context")
        inline = context.get("files") if isinstance(context, dict) else None
        files = dict(_inline(inline)) | dict(_inline(self.value.get("files")))
        for step, name in _named(self.value.get("files")):
            try:
                files |= read_files(name)
            except OutsideError as error:
                self._note(("files", *step), str(error))
            except Unreadable as error:
                self.reasons.append(f"files: {error}")
        if sum(len(text.encode()) for text in files.values()) > MAX_TOTAL_BYTES:
            self.reasons.append(f"files: over {MAX_TOTAL_BYTES >> 10} KiB in all")
        return files

    def _checks(self, assertion: object, path: JsonPath) -> Checks:
        try:
            return checks_of(assertion)
        except Unsupported as error:
            self.reasons.append(f"{path[0]}: {error}")
        except ValueError as error:
            self._note(path, str(error))
        return ()

    def _note(self, path: JsonPath, what: str) -> None:
        whole = (*self._path, *path)
        place = whole if whole in self._document.places else self._path
        self.problems.append(self._document.problem(place, what))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _features(value: Mapping[str, Any], skills: Collection[str]) -> Iterator[str]:
    """Name what a case wants that only an agent has."""
    for key in _TRIGGERS:
        if value.get(key) is False:
            yield f"{key}: {_CHOSEN}"
    for key in _SKILLS:
        named = key in value and not isinstance(value[key], bool)
        if named and not any(skill in _wanted(value, key) for skill in skills):
            yield f"{key} is {value[key] or 'none'}: {_CHOSEN}"
    yield from (_FEATURES[key] for key, part in value.items() if part and key in _FEATURES)


def _wanted(value: Mapping[str, Any], key: str) -> list[object]:
    acceptable = value.get("acceptable_skills")
    return [value[key], *(acceptable if isinstance(acceptable, list) else ())]


def _nothing(value: Mapping[str, Any]) -> Iterator[str]:
    """Say why there is nothing to check."""
    key = next((key for key in (*_TRIGGERS, *_SKILLS) if value.get(key)), None)
    yield f"{key}: {_CHOSEN}" if key else f"nothing to check: add {_ASSERTIONS[0]!r}"


def _assertions(value: object) -> Iterator[tuple[JsonPath, object]]:
    """List assertions with their steps: one, several, or an object of type to value."""
    if isinstance(value, list):
        yield from (((index,), assertion) for index, assertion in enumerate(value))
    elif isinstance(value, dict):
        yield from (((kind,), {"type": kind, "value": part}) for kind, part in value.items())
    elif value is not None and not isinstance(value, bool):
        yield (), value


def _sought(part: object, kind: str) -> object:
    """Write what is looked for as an assertion: a text, or an object that says how to look."""
    if isinstance(part, dict):
        return part | {"negate": True} if kind.startswith("not_") else part
    return {"type": kind, "value": part} if isinstance(part, str) else part


def _references(value: Mapping[str, Any], *, alone: bool) -> Checks:
    """Make statements of the answer that is wanted; its description counts where nothing else does.

    Args:
        value: The case.
        alone: Whether nothing else is asserted.
    """
    texts = [("The answer agrees with this reference: ", value.get("ground_truth"))]
    if alone:
        texts += [("The answer fits this: ", value.get(key)) for key in _DESCRIPTIONS]
    return [
        statement
        for prefix, text in texts
        if isinstance(text, str)
        for statement in statements([text], prefix=prefix)
    ]


def _named(files: object) -> Iterator[tuple[JsonPath, str]]:
    """List files that are named only."""
    if isinstance(files, str):
        yield (), files
    elif isinstance(files, list):
        yield from (((index,), name) for index, name in enumerate(files) if _is_text(name))


def _inline(files: object) -> Iterator[tuple[str, str]]:
    """List files that stand in the case itself, name and text."""
    if isinstance(files, dict):
        yield from ((name, text) for name, text in files.items() if isinstance(text, str))
    elif isinstance(files, list):
        for file in files:
            if isinstance(file, dict) and isinstance(file.get("content"), str):
                yield str(file.get("path") or file.get("name") or "file"), file["content"]
