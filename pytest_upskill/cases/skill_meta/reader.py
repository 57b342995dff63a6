"""Reading of a ``skill_meta.json`` into cases, or into a list of all its problems."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, get_args

from pydantic import ValidationError

from pytest_upskill.cases.case_inputs import CaseInputs
from pytest_upskill.cases.skill import Case, GateRule, Trigger, plain_name
from pytest_upskill.cases.skill_meta import schema
from pytest_upskill.cases.skill_meta.expected import (
    Entry,
    Expected,
    keys_of,
)
from pytest_upskill.cases.skill_meta.values import suggestion
from pytest_upskill.cases.source.case_ids import case_ids
from pytest_upskill.cases.source.document import (
    BadFile,
    Document,
    JsonPath,
    Problem,
    translate_error,
)
from pytest_upskill.cases.source.json import read_json
from pytest_upskill.cases.statements import MARK_KEY, with_marks
from pytest_upskill.checks.extensions import NO_EXTENSIONS, Extensions
from pytest_upskill.checks.files import Setup, WorkspaceFile

_VALIDATOR = "validator: upskill's validators check files, and a single answer leaves none"


class _NamedEntry(NamedTuple):
    """A case as it is in the file, with its id."""

    path: JsonPath
    value: Mapping[str, Any]
    case_id: str


def read_cases(
    text: str,
    *,
    inputs: CaseInputs | None = None,
    names: Collection[str] = (),
    extensions: Extensions = NO_EXTENSIONS,
) -> tuple[tuple[Case, ...], GateRule]:
    """Read a ``skill_meta.json``, or a list of cases.

    Args:
        text: The file's text.
        inputs: Reads the files that cases name; None if the cases are in no file.
        names: All names of the skill that the cases belong to.
        extensions: What plugins add to the format.

    Returns:
        The cases, and the gate of the file.

    Raises:
        BadFile: The file has problems; it lists all of them.
    """
    document = read_json(text)
    context = {"inputs": inputs, "extensions": extensions}
    named = _named_entries(document.value)
    file = _validate(document, named, context)
    cases: dict[JsonPath, Case] = {}
    problems: list[Problem] = []
    for entry, (path, raw, case_id) in zip(file.cases or file.tests, named, strict=True):
        trigger = None
        try:
            trigger = _trigger(entry, names)
        except ValueError as error:
            problems.append(document.problem((*path, "expected_skill"), str(error)))
        line = document.line(path)
        case = _case(entry, name=case_id, line=line, file=file, raw=raw, trigger=trigger)
        try:
            cases[path] = with_marks(case, entry.statements)
        except ValueError as error:
            problems.append(document.problem((*path, MARK_KEY), str(error)))
    problems += _repeated_queries(document, cases)
    if problems:
        raise BadFile(problems)
    return tuple(cases.values()), GateRule(**dict(file.gate))


def _validate(
    document: Document, named: Iterable[_NamedEntry], context: Mapping[str, Any]
) -> schema.CaseFile:
    """Check a document against the format.

    Raises:
        BadFile: The file has problems; it lists all of them.
    """
    value = {"cases": document.value} if isinstance(document.value, list) else document.value
    problems = [
        *_repeated_ids(document, named),
        *_unclaimed_keys(document, context["extensions"]),
    ]
    try:
        file = schema.CaseFile.model_validate(value, context=context)
    except ValidationError as error:
        problems += [
            translate_error(document, details, meant=suggest_key)
            for details in error.errors(include_url=False)
        ]
        raise BadFile(problems) from None
    if problems:
        raise BadFile(problems)
    return file


def _objects(value: Any) -> list[tuple[JsonPath, Mapping[str, Any]]]:
    """Return the path and the value of every object that could be a case."""
    if isinstance(value, list):
        lists: list[tuple[JsonPath, Any]] = [((), value)]
    elif isinstance(value, dict):
        lists = [((key,), value[key]) for key in ("cases", "tests") if key in value]
    else:
        lists = []
    return [
        ((*path, index), entry)
        for path, listed in lists
        if isinstance(listed, list)
        for index, entry in enumerate(listed)
        if isinstance(entry, dict)
    ]


def _unclaimed_keys(document: Document, extensions: Extensions) -> Iterator[Problem]:
    """Find the keys of ``expected`` that are neither built in nor claimed by a plugin."""
    known = {field.alias or name for name, field in Expected.model_fields.items()}
    for path, entry in _objects(document.value):
        expected = entry.get("expected")
        if not isinstance(expected, dict):
            continue
        for key in expected.keys() - known:
            place = (*path, "expected", key)
            try:
                if not extensions.claims(key, expected[key]):
                    yield document.problem(place, f"unknown key{suggest_key(place)}", key=True)
            except ValueError as error:
                yield document.problem(place, str(error))


def _named_entries(value: Any) -> list[_NamedEntry]:
    """Return every case that has an id or an input, with its id."""
    entries = [
        (path, entry)
        for path, entry in _objects(value)
        if isinstance(entry.get("id") or entry.get("input"), str)
    ]
    ids = case_ids([entry for _, entry in entries])
    return [
        _NamedEntry(path, entry, case_id)
        for (path, entry), case_id in zip(entries, ids, strict=True)
    ]


def _repeated_ids(document: Document, named: Iterable[_NamedEntry]) -> Iterator[Problem]:
    first: dict[str, JsonPath] = {}
    for path, entry, case_id in named:
        other = first.setdefault(case_id, path)
        if other == path:
            continue
        line = document.line(other)
        if entry.get("id"):
            what = f"{case_id!r} is also the id of the case in line {line}: choose another"
            yield document.problem((*path, "id"), what)
        else:
            yield document.problem(path, f"repeats the case in line {line}: remove it")


def _repeated_queries(document: Document, cases: Mapping[JsonPath, Case]) -> Iterator[Problem]:
    """Yield a problem for each query that occurs twice: it would count as two, or contradict."""
    first: dict[object, Case] = {}
    for path, case in cases.items():
        if case.trigger is None:
            continue
        query = case.input, case.files, case.workspace, case.setup, case.models
        other = first.setdefault(query, case)
        if other is case or other.trigger is None:
            continue
        relation = "contradicts" if case.trigger.should != other.trigger.should else "repeats"
        cure = "remove one"
        if case.checks:
            cure = "remove should_trigger or expected_skill from one"
        what = f"{relation} the query of the case in line {other.line}: {cure}"
        yield document.problem(path, what)


def _case(
    entry: schema.CaseEntry,
    *,
    name: str,
    line: int,
    file: schema.CaseFile,
    raw: Mapping[str, Any],
    trigger: Trigger | None,
) -> Case:
    """Make a case of its validated entry.

    Args:
        entry: The entry.
        name: Its id.
        line: Its line in the file, from 1.
        file: The file, for its defaults.
        raw: The entry as it is in the file, for the order of its checks.
        trigger: Which skill an agent should choose.
    """
    rate = file.defaults.min_pass_rate if entry.min_pass_rate is None else entry.min_pass_rate
    return Case(
        id=name,
        input=entry.input,
        checks=tuple(entry.expected.deciding(raw["expected"])) if entry.expected else (),
        files=(*_context_files(entry), *(entry.files or ())),
        min_pass_rate=rate,
        models=tuple(entry.models) if entry.models else None,
        tags=tuple(entry.tags or ()),
        reference=entry.reference or "",
        train=entry.train,
        quote=(entry.provenance and entry.provenance.quote) or "",
        line=line,
        skip=_VALIDATOR if entry.validator else None,
        trigger=trigger,
        workspace=(*(entry.workspace or ()), *((entry.setup and entry.setup.files) or ())),
        setup=Setup(
            git=entry.git or False,
            commands=tuple(entry.setup.commands) if entry.setup else (),
        ),
        max_turns=entry.max_turns,
        process=tuple(entry.expected.process()) if entry.expected else (),
    )


def _context_files(entry: schema.CaseEntry) -> Iterator[WorkspaceFile]:
    for name, text in ((entry.context and entry.context.files) or {}).items():
        yield WorkspaceFile(name=name, text=text)


def _trigger(entry: schema.CaseEntry, names: Collection[str]) -> Trigger | None:
    """Return which skill an agent should choose, None if the case does not say.

    Args:
        entry: The case.
        names: All names of the skill that it belongs to.

    Raises:
        ValueError: ``expected_skill`` contradicts ``should_trigger``.
    """
    is_stated = "should_trigger" in entry.model_fields_set
    if "expected_skill" not in entry.model_fields_set:
        return Trigger(should=entry.should_trigger) if is_stated else None
    own = {plain_name(name) for name in names}
    expected = entry.expected_skill or []
    others = tuple(name for name in expected if plain_name(name) not in own)
    should = len(others) < len(expected)
    if is_stated and should != entry.should_trigger:
        value = "true" if entry.should_trigger else "false"
        raise ValueError(f"contradicts 'should_trigger': {value}: remove one of the two")
    return Trigger(should=should, others=others, nothing=not expected)


def _models_in(annotation: object) -> Iterator[type[Entry]]:
    if isinstance(annotation, type) and issubclass(annotation, Entry):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _models_by_key(model: type[Entry], key: str = "") -> Iterator[tuple[str, type[Entry]]]:
    """Yield a model with the key that holds its objects, and those of the objects in them."""
    yield key, model
    for name, field in model.model_fields.items():
        for inner in _models_in(field.annotation):
            yield from _models_by_key(inner, field.alias or name)


_OBJECTS: Mapping[str, type[Entry]] = dict(_models_by_key(schema.CaseFile))
"""The model of an object, by the key that holds it."""

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    synonym: tuple(keys.split())
    for keys, synonyms in (
        ("should_trigger", "trigger triggers should_activate should_fire expected_activation"),
        ("expected_skill", "skill expect_skill expected_skills target_skill"),
        ("min_recall", "recall"),
        ("max_false_triggers", "false_triggers max_false_trigger_rate"),
        ("input", "prompt question query task instruction message user_input user_message"),
        ("expected", "assert assertions checks expect expectations expected_output"),
        ("id", "name slug title case_id"),
        ("reference", "reference_answer gold golden ideal expected_answer"),
        ("tags", "labels keywords markers"),
        ("cases", "evals evaluations scenarios test_cases"),
        ("min_pass_rate min_mean_pass_rate", "pass_rate threshold pass_threshold"),
        ("min_lift", "lift"),
        *((key, makes.kind.also_called) for key, (_, makes) in keys_of(Expected).items()),
        ("language", "lang"),
        ("code", "script source tests"),
        ("files context", "file fixtures attachments"),
        ("workspace", "sandbox working_directory cwd"),
        ("context", "files"),
    )
    for synonym in synonyms.split()
}
"""Names in other formats, each with the keys here that it may mean, the likeliest first."""


def suggest_key(path: JsonPath) -> str:
    """Return a suggestion for the unknown key at the end of ``path``."""
    *parents, word = (step for step in path if isinstance(step, str))
    listed = "cases" if isinstance(path[0], int) else ""
    # Below "file" come names of files, each with an object of checks.
    holder = "file" if parents[-2:-1] == ["file"] else parents[-1] if parents else listed
    fields = _OBJECTS[str(holder)].model_fields
    known = tuple(field.alias or name for name, field in fields.items())
    correct_keys = _SYNONYMS.get(str(word).lower().replace("-", "_"), ())
    return suggestion(next((key for key in correct_keys if key in known), str(word)), known)
