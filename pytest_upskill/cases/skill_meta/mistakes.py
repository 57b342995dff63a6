"""Which key of a skill_meta.json is meant by an unknown one."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_upskill.cases.skill_meta import expected
from pytest_upskill.cases.skill_meta import schema as entries
from pytest_upskill.cases.skill_meta.text_checks import Entry, TextChecks, keys_of
from pytest_upskill.cases.skill_meta.values import suggestion
from pytest_upskill.cases.source.json import JsonPath

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
        ("min_pass_rate min_mean_pass_rate", "pass_rate threshold pass_threshold"),
        ("min_lift", "lift"),
        *((key, makes.kind.also_called) for key, (_, makes) in keys_of(expected.Expected).items()),
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
