"""Messages about mistakes in a skill_meta.json, with the key that may be meant."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import ErrorDetails

from pytest_upskill.formats.skill_meta import expected
from pytest_upskill.formats.skill_meta import schema as entries
from pytest_upskill.formats.skill_meta.text_checks import Entry, TextChecks
from pytest_upskill.formats.skill_meta.values import suggestion
from pytest_upskill.formats.source.json import Document, JsonPath
from pytest_upskill.formats.source.problems import Problem, shown

_LISTS: tuple[JsonPath, ...] = ((), ("cases",), ("tests",))
"""Where the list of cases is."""

_TYPES = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "an object",
    "string_type": "a string",
}


_OBJECTS: Mapping[str, type[Entry]] = {
    "": entries.CaseFile,
    "cases": entries.CaseEntry,
    "compile": expected.CompileEntry,
    "context": entries.Context,
    "defaults": entries.Defaults,
    "expected": expected.Expected,
    "file": TextChecks,
    "gate": entries.Gate,
    "provenance": entries.Provenance,
    "run": expected.RunEntry,
    "tests": entries.CaseEntry,
}
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
        ("min_pass_rate", "pass_rate threshold pass_threshold"),
        ("min_lift", "lift"),
        ("contains", "contain contains_all includes must_contain must_include has"),
        ("not_contains", "excludes must_not_contain must_not_include does_not_contain"),
        ("contains_any", "any any_of one_of includes_any"),
        ("regex", "pattern patterns match matches regexp required_regex"),
        ("not_regex", "not_matches not_match forbidden_regex"),
        ("json_schema", "schema jsonschema"),
        ("compile", "build builds compiles"),
        ("run", "test code_test exec execute"),
        ("judge", "rubric criteria statement statements llm llm_rubric"),
        ("language", "lang"),
        ("code", "script source tests"),
        ("files context", "file fixtures attachments"),
        ("workspace", "sandbox working_directory cwd"),
        ("file_exists", "files_exist output_files expected_files artifacts"),
        ("context", "files"),
    )
    for synonym in synonyms.split()
}
"""Names in other formats, each with the keys here that it may mean, the likeliest first."""


def translated(document: Document, loc: JsonPath, details: ErrorDetails) -> Problem:
    """Translate an error of pydantic into a problem with a place."""
    path = _existing(document, loc)
    value, kind, context = details["input"], details["type"], details.get("ctx", {})
    last = loc[-1] if loc else ""
    match kind:
        case "missing":
            return document.problem(path, "missing", missing=str(last))
        case "extra_forbidden":
            return document.problem(path, f"unknown key{key_meant(path)}", key=True)
        case "value_error":
            what = str(context["error"])
        case "too_short" if path in _LISTS:
            what = "contains no cases: add one, with 'input' and 'expected'"
        case "string_too_short" | "too_short":
            what = "must not be empty"
        case "string_too_long":
            what = f"must have at most {context['max_length']} characters"
        case "greater_than_equal":
            what = f"must be at least {context['ge']:g}, got {shown(value)}"
        case "less_than_equal":
            what = f"must be at most {context['le']:g}, got {shown(value)}"
        case _:
            got = f"must be {_TYPES.get(kind)}, got {shown(value)}"
            what = got if kind in _TYPES else details["msg"]
    return document.problem(path, what)


def _existing(document: Document, loc: JsonPath) -> JsonPath:
    """Drop the steps of pydantic's location that do not exist in the document."""
    path: JsonPath = ()
    for step in loc:
        if (*path, step) in document.places:
            path = (*path, step)
    return path


def key_meant(path: JsonPath) -> str:
    """Return a suggestion for the unknown key at the end of ``path``."""
    *parents, word = (step for step in path if isinstance(step, str))
    listed = "cases" if isinstance(path[0], int) else ""
    # Below "file" come names of files, each with an object of checks.
    holder = "file" if parents[-2:-1] == ["file"] else parents[-1] if parents else listed
    fields = _OBJECTS[str(holder)].model_fields
    known = tuple(field.alias or name for name, field in fields.items())
    meant = _SYNONYMS.get(str(word).lower().replace("-", "_"), ())
    return suggestion(next((key for key in meant if key in known), str(word)), known)
