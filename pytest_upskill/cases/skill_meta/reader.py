"""Reading of a ``skill_meta.json`` into cases, or into a list of all its problems."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, get_args

from pydantic import ValidationError

from pytest_upskill.cases.skill import MARK_KEY, Case, GateRule, with_marks
from pytest_upskill.cases.skill_files import SkillFolder
from pytest_upskill.cases.skill_meta.expected import Entry
from pytest_upskill.cases.skill_meta.schema import CaseEntry, CaseFile, SetupEntry
from pytest_upskill.cases.skill_meta.values import Around, suggestion
from pytest_upskill.cases.source.case_ids import case_ids
from pytest_upskill.cases.source.document import BadFile, Document, JsonPath, Problem, translated
from pytest_upskill.cases.source.formats import read_json
from pytest_upskill.checks.extensions import NO_EXTENSIONS, Extensions
from pytest_upskill.checks.files import Setup, WorkspaceFile

_VALIDATOR = "validator: upskill's validators check files, and a single answer leaves none"


def read_cases(
    text: str, *, skill: SkillFolder | None = None, extensions: Extensions = NO_EXTENSIONS
) -> tuple[tuple[Case, ...], GateRule]:
    """Read a ``skill_meta.json``, or a list of cases.

    Args:
        text: The file's text.
        skill: The skill that the cases belong to; None if they are in no file.
        extensions: What plugins add to the format.

    Returns:
        The cases, and the gate of the file.

    Raises:
        BadFile: The file has problems; it lists all of them.
    """
    document = read_json(text)
    raw = _entries(document.value)
    problems = [*_repeated(document, raw), *_unclaimed_keys(document, raw, extensions)]
    value = {"cases": document.value} if isinstance(document.value, list) else document.value
    try:
        file = CaseFile.model_validate(value, context=Around(skill, extensions))
    except ValidationError as error:
        raise BadFile([*problems, *translated(document, error, meant=suggest_key)]) from None
    if problems:
        raise BadFile(problems)
    entries = [*zip(file.cases or file.tests, raw.items(), strict=True)]
    ids = case_ids([(each.id or "", each.input, value) for each, (_, value) in entries])
    cases: dict[JsonPath, Case] = {}
    for (entry, (path, value)), case_id in zip(entries, ids, strict=True):
        line, column = document.place(path)
        case = replace(_case(entry, value, file), id=case_id, line=line, column=column)
        try:
            cases[path] = with_marks(case, entry.statements)
        except ValueError as error:
            problems.append(document.problem((*path, MARK_KEY), str(error)))
    gate = GateRule(**dict(file.gate))
    problems += _repeated_queries(document, cases)
    problems += _unmeasured_limits(document, cases.values(), gate)
    if problems:
        raise BadFile(problems)
    return tuple(cases.values()), gate


def _entries(value: Any) -> Mapping[JsonPath, Mapping[str, Any]]:
    """Return every object that could be a case, by its path."""
    lists: dict[JsonPath, Any] = {(): value}
    if isinstance(value, dict):
        lists = {(key,): value[key] for key in ("cases", "tests") if key in value}
    return {
        (*path, index): entry
        for path, listed in lists.items()
        if isinstance(listed, list)
        for index, entry in enumerate(listed)
        if isinstance(entry, dict)
    }


def _unclaimed_keys(
    document: Document, raw: Mapping[JsonPath, Mapping[str, Any]], extensions: Extensions
) -> Iterator[Problem]:
    """Find the keys of ``expected`` that are neither built in nor claimed by a plugin."""
    known = set(_KNOWN["expected"])
    for path, entry in raw.items():
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


def _repeated(document: Document, raw: Mapping[JsonPath, Mapping[str, Any]]) -> Iterator[Problem]:
    """Find ids that are given twice."""
    first: dict[str, JsonPath] = {}
    for path, entry in raw.items():
        name = entry.get("id")
        if isinstance(name, str) and name and (other := first.setdefault(name, path)) != path:
            line = document.place(other)[0]
            what = f"{name!r} is also the id of the case in line {line}: choose another"
            yield document.problem((*path, "id"), what)


def _repeated_queries(document: Document, cases: Mapping[JsonPath, Case]) -> Iterator[Problem]:
    """Yield a problem for each query that occurs twice: it would count as two, or contradict."""
    first: dict[object, Case] = {}
    for path, case in cases.items():
        if case.trigger is not None:
            query = case.input, case.files, case.workspace, case.setup, case.models
            other = first.setdefault(query, case)
            if other is not case:
                relation = "repeats" if case.trigger == other.trigger else "contradicts"
                cure = "remove one, or its should_trigger or expected_skill"
                what = f"{relation} the query of the case in line {other.line}: {cure}"
                yield document.problem(path, what)


def _unmeasured_limits(
    document: Document, cases: Collection[Case], gate: GateRule
) -> Iterator[Problem]:
    """Yield a problem for each limit that could never fail, as no case measures its figure."""
    queries = [case for case in cases if case.trigger]
    answers = [case for case in cases if case.is_answered]
    measured_by = {"min_recall": queries, "max_false_triggers": queries}
    measured_by |= {"min_lift": [case for case in answers if not case.train]}
    for name, limit in asdict(gate).items():
        if limit is not None and not measured_by.get(name, answers):
            what = "no case measures it: add one, or remove the limit"
            yield document.problem(("gate", name), what)


def _case(entry: CaseEntry, raw: Mapping[str, Any], file: CaseFile) -> Case:
    """Make a case, without its id and place, of its validated entry and the file's defaults."""
    expected, setup = entry.expected, entry.setup or SetupEntry()
    context = (entry.context and entry.context.files) or {}
    rate = file.defaults.min_pass_rate if entry.min_pass_rate is None else entry.min_pass_rate
    return Case(
        id="",
        input=entry.input,
        checks=tuple(expected.deciding(raw["expected"])) if expected else (),
        files=(
            *(WorkspaceFile(name=name, text=text) for name, text in context.items()),
            *(entry.files or ()),
        ),
        min_pass_rate=rate,
        models=tuple(entry.models) if entry.models else None,
        tags=tuple(entry.tags or ()),
        reference=entry.reference or "",
        train=entry.train,
        quote=(entry.provenance and entry.provenance.quote) or "",
        skip=_VALIDATOR if entry.validator else None,
        trigger=entry.trigger,
        workspace=(*(entry.workspace or ()), *(setup.files or ())),
        setup=Setup(git=entry.git or False, commands=tuple(setup.commands)),
        max_turns=entry.max_turns,
        process=tuple(expected.process()) if expected else (),
    )


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


_KNOWN = {
    key: tuple(field.alias or name for name, field in model.model_fields.items())
    for key, model in _models_by_key(CaseFile)
}
"""The keys of an object, by the key that holds it."""

_HOMES = {"": "beside 'cases'", "cases": "in a case"}
"""Where the keys of an object belong, if not simply into the key that holds it."""

_SYNONYMS = {
    "assertions": "expected",
    "contains_all": "contains",
    "contains_none": "not_contains",
    "contains_not": "not_contains",
    "evals": "cases",
    "file": "files",
    "min_pass_rate": "min_mean_pass_rate",
    "must_contain": "contains",
    "name": "id",
    "prompt": "input",
    "question": "input",
    "skill": "expected_skill",
}
"""Names in other formats, each with the key here that it means."""


def suggest_key(path: JsonPath) -> str:
    """Return a suggestion for the unknown key at the end of ``path``."""
    *parents, word = (step for step in path if isinstance(step, str))
    listed = "cases" if isinstance(path[0], int) else ""
    # Below "file" come names of files, each with an object of checks.
    holder = "file" if parents[-2:-1] == ["file"] else parents[-1] if parents else listed
    known = _KNOWN[holder]
    if (meant := _SYNONYMS.get(word)) in known:
        return suggestion(meant, known)
    home = next((home for home in ("cases", *_KNOWN) if word in _KNOWN[home]), holder)
    if home == holder:
        return suggestion(word, known)
    return f" (it belongs {_HOMES.get(home, f'in {home!r}')})"
