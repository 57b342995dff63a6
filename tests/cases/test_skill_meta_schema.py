"""The published JSON schema of skill_meta.json agrees with the reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from pytest_upskill.cases import skill_meta
from pytest_upskill.cases.skill_files import SkillFolder
from pytest_upskill.cases.skill_md import SkillText
from pytest_upskill.cases.skill_meta.reader import read_cases
from pytest_upskill.cases.source.document import BadFile
from tests.conftest import Run
from tests.pages import CHECKOUT, OUT_OF_DATE
from tests.shipped.schemas import case_schema

FOLDER = Path(skill_meta.__path__[0])
SHIPPED = (FOLDER / "skill_meta.schema.json").read_text("utf-8")
SKILL = SkillFolder(
    FOLDER, SkillText(name="a", text="", body_at=0, warnings=()), FOLDER / "skill_meta.json"
)
SCHEMA = json.loads(SHIPPED)
VALIDATOR = Draft7Validator(SCHEMA)
CASE = {"input": "Say hi", "expected": {"contains": "hi"}}


def case(**more: Any) -> dict[str, Any]:
    return {**CASE, **more}


def accepted(document: Any) -> bool:
    try:
        read_cases(json.dumps(document), skill=SKILL)
    except BadFile:
        return False
    return True


def test_the_shipped_schema_is_the_one_that_the_models_make() -> None:
    assert case_schema() == SHIPPED, OUT_OF_DATE


def test_every_field_of_the_schema_is_described() -> None:
    Draft7Validator.check_schema(SCHEMA)
    for name, model in SCHEMA["definitions"].items():
        for field, schema in model["properties"].items():
            assert "description" in schema or "$ref" in schema, f"{name}.{field}"


def test_schemastore_takes_the_schema() -> None:
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert SCHEMA["$id"].startswith("https://json.schemastore.org/")
    for part in (SCHEMA, *SCHEMA["definitions"].values()):
        assert part["title"].islower()
        assert part["description"]
        assert part.get("type") != "object" or part["additionalProperties"] is False


def test_every_example_skill_validates() -> None:
    files = sorted(CHECKOUT.glob("example_skills/*/skill_meta.json"))

    assert files
    for file in files:
        VALIDATOR.validate(json.loads(file.read_text("utf-8")))


@pytest.mark.parametrize(
    "document",
    [
        [CASE],
        {"$schema": "skill_meta.schema.json", "cases": [CASE]},
        {"tests": [case(context=None, output_file=None, validator=None, validator_config=None)]},
        {"gate": {"min_lift": 0.2, "min_mean_pass_rate": 1}, "defaults": {"min_pass_rate": 0},
         "cases": [case(id="v1.2 é", tags="slow", models=["haiku"], min_pass_rate=0.5)]},
        [case(expected={"regex": ["a"], "json_schema": {"type": "object"}, "contains_any": ["b"]})],
        [case(expected={"json_schema": "skill_meta.schema.json", "toml": {"a.b": 1}})],
        [case(expected={"judge": "Is polite"})],
        [case(expected={"compile": "cuda"})],
        [case(expected={"compile": {"language": "cuda", "arch": "sm_90", "flags": ["-O3"]}})],
        [case(expected={"run": {"language": "python", "code": "assert f() == 1"}})],
        [case(context={"files": {"a.csv": "1"}})],
    ],
)  # fmt: skip
def test_what_the_reader_accepts_validates(document: Any) -> None:
    assert accepted(document)
    assert list(VALIDATOR.iter_errors(document)) == []


@pytest.mark.parametrize(
    "document",
    [
        3,
        {},
        [],
        [3],
        {"cases": []},
        {"tests": []},
        {"metadata": {"version": "1.0"}, "tests": []},
        {"cases": [CASE], "tests": []},
        {"cases": [CASE], "gates": {}},
        {"cases": [CASE], "gate": {"min_lift": 2}},
        [{"input": "a"}],
        [case(input="")],
        [case(id="a::b")],
        [case(id="gate")],
        [case(id=" a")],
        [case(min_pass_rate="1")],
        [case(tags=[])],
        [case(expected={})],
        [case(expected={"contians": "a"})],
        [case(expected={"contains": []})],
        [case(expected={"contains": 3})],
        [case(expected={"contains_any": "a"})],
        [case(expected={"json_schema": {}})],
        [case(expected={"run": None})],
        [case(expected={"compile": {}})],
        [case(context={"file": {}})],
        [case(context={"files": {"a": 1}})],
    ],
)
def test_what_the_reader_refuses_for_its_shape_does_not_validate(document: Any) -> None:
    assert not accepted(document)
    assert list(VALIDATOR.iter_errors(document))


KEYS = st.sampled_from(
    ["cases", "tests", "input", "expected", "id", "contains", "judge", "context", "files", "gate",
     "min_lift", "defaults", "tags", "models", "metadata", "x"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers(-1, 1) | st.sampled_from(["", "a", "b"])
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
CASES = st.fixed_dictionaries(
    {"input": st.just("a") | LEAVES, "expected": st.dictionaries(KEYS, DOCUMENTS, max_size=2)},
    optional={"id": LEAVES, "tags": DOCUMENTS, "context": DOCUMENTS, "min_pass_rate": LEAVES},
)


@settings(max_examples=150, deadline=None)
@given(CASES | st.dictionaries(KEYS, DOCUMENTS, max_size=3))
def test_reader_and_schema_agree_on_any_case(entry: Any) -> None:
    assert accepted([entry]) == VALIDATOR.is_valid([entry])


def test_the_schema_is_written_instead_of_a_run(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_something(): raise AssertionError")

    result = run("--upskill-write-schema", "skill_meta.schema.json")

    assert result.ret == 0
    assert (pytester.path / "skill_meta.schema.json").read_text("utf-8") == SHIPPED, OUT_OF_DATE


def test_a_schema_that_cannot_be_written_is_one_line(run_once: Run) -> None:
    result = run_once("--upskill-write-schema", "none/skill_meta.schema.json")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --upskill-write-schema: */none/skill_meta.schema.json: No such file or directory"]
    )
