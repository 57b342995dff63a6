"""Mistakes in skill_meta.json are reported with place and cure."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pytest_upskill.cases.skill_meta.reader import read_cases
from pytest_upskill.cases.source.document import BadFile

TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]


def problems(value: Any) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value)
    with pytest.raises(BadFile) as caught:
        read_cases(text)
    return [problem.at("f") for problem in caught.value.problems]


def unplaced(value: Any) -> list[str]:
    return [re.sub(r"^f:\d+:\d+: ", "", line) for line in problems(value)]


def case(**more: Any) -> dict[str, Any]:
    return {"input": "Say hi", "expected": {"contains": "hi"}, **more}


def expected(**entries: Any) -> list[dict[str, Any]]:
    return [case(expected=entries)]


def test_all_mistakes_of_a_file_are_reported_at_once_with_their_places() -> None:
    text = """{
  "cases": [
    {"id": "a", "input": "x", "expected": {"contains": "y"}},
    {"id": "a", "input": 3, "expected": {
      "contians": "y",
      "regex": ["ok", "a)"]
    }, "min_pass_rate": 2}
  ],
  "gates": {}
}"""

    assert problems(text) == [
        "f:4:12: cases[1].id: 'a' is also the id of the case in line 3: choose another",
        "f:4:26: cases[1].input: must be a string, got 3",
        "f:5:7: cases[1].expected.contians: unknown key (did you mean 'contains'?)",
        "f:6:23: cases[1].expected.regex[1]: bad pattern: unbalanced parenthesis at character 2",
        "f:7:25: cases[1].min_pass_rate: must be at most 1, got 2: write 0.02 for 2 %",
        "f:9:3: gates: unknown key (did you mean 'gate'?)",
    ]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (3, "must be an object, got 3"),
        ({}, "must have one list of cases, 'cases' or 'tests'"),
        ({"tests": []}, "tests: contains no cases: add one, with 'input' and 'expected'"),
        ({"evals": [case()]}, "evals: unknown key (did you mean 'cases'?)"),
        ({"cases": [case()], "tests": [case(id="b")]},
         "must have one list of cases, 'cases' or 'tests'"),
        ({"cases": []}, "cases: contains no cases: add one, with 'input' and 'expected'"),
        ([], "contains no cases: add one, with 'input' and 'expected'"),
        ({"cases": {}}, "cases: must be a list, got {}"),
        ([[]], "[0]: must be an object, got []"),
        ({"cases": [case()], "gate": {"min_lift": 20}},
         "gate.min_lift: must be at most 1, got 20: write 0.2 for 20 %"),
        ({"cases": [case()], "gate": {"min_recall": "90%"}},
         'gate.min_recall: must be a number such as 0.2, got "90%"'),
        ({"cases": [case(gate={})]}, "cases[0].gate: unknown key (it belongs beside 'cases')"),
        (
            {"cases": [case(expected={"contains": "a", "min_pass_rate": 0.5})]},
            "cases[0].expected.min_pass_rate: unknown key (it belongs in a case)",
        ),
        ({"cases": [case()], "tags": ["a"]}, "tags: unknown key (it belongs in a case)"),
        ({"cases": [case()], "min_lift": 0.2}, "min_lift: unknown key (it belongs in 'gate')"),
        ({"cases": [case()], "gate": {"min_pass_rate": 1}},
         "gate.min_pass_rate: unknown key (did you mean 'min_mean_pass_rate'?)"),
        ({"cases": [case()], "gate": {"min_recall": 0.0}},
         "gate.min_recall: no case measures it: add one, or remove the limit"),
        ({"cases": [case()], "gate": {"max_false_triggers": 1}},
         "gate.max_false_triggers: no case measures it: add one, or remove the limit"),
        ({"cases": [case(train=True)], "gate": {"min_lift": 0.1}},
         "gate.min_lift: no case measures it: add one, or remove the limit"),
        ({"cases": [{"input": "a", "should_trigger": True}], "gate": {"min_mean_pass_rate": 1}},
         "gate.min_mean_pass_rate: no case measures it: add one, or remove the limit"),
        ({"cases": [case()], "defaults": {"runs": 3}},
         "defaults.runs: unknown key (known: min_pass_rate)"),
    ],
)  # fmt: skip
def test_a_document_that_is_no_case_file_is_refused(document: Any, problem: str) -> None:
    assert unplaced(document) == [problem]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"input": "a"},
         "[0]: nothing to check: add 'expected', or 'should_trigger' or 'expected_skill'"),
        ({"expected": {"contains": "a"}}, "[0].input: missing"),
        ({"imput": "a", "expected": {"contains": "a"}},
         "[0].imput: unknown key (did you mean 'input'?)"),
        (case(expected={}), "[0].expected: nothing to check: add a check such as 'contains'"),
        (case(expected=None), "[0].expected: nothing to check: add a check such as 'contains'"),
        (case(expected="hi"),
         '[0].expected: must be an object such as {"contains": "a text"}, got "hi"'),
        (case(expected={"run": "assert x"}),
         '[0].expected.run: must be an object, got "assert x" (known: code, file, language)'),
        (case(expected={"compile": {"language": "c", "flags": "-Wall"}}),
         '[0].expected.compile.flags: must be a list, got "-Wall": write ["-Wall"]'),
        (case(input=""), "[0].input: must not be empty"),
        (case(input=" \n"), "[0].input: must not be blank"),
        (case(input=None), "[0].input: must be a string, got null"),
        (case(min_pass_rate=-0.5), "[0].min_pass_rate: must be at least 0, got -0.5"),
        (case(min_pass_rate=True), "[0].min_pass_rate: must be a number such as 0.2, got true"),
        (case(min_pass_rate="1"), '[0].min_pass_rate: must be a number such as 0.2, got "1"'),
        (case(models=[]), "[0].models: must not be empty"),
        (case(tags=[1]), "[0].tags[0]: must be a string, got 1"),
        (case(context={"files": {"a": 1}}), "[0].context.files.a: must be a string, got 1"),
        (case(context={"file": {}}), "[0].context.file: unknown key (did you mean 'files'?)"),
        (case(contains="a"), "[0].contains: unknown key (it belongs in 'expected')"),
        (case(prompt="a"), "[0].prompt: unknown key (did you mean 'input'?)"),
        (case(assertions=["a"]), "[0].assertions: unknown key (did you mean 'expected'?)"),
        (case(name="a"), "[0].name: unknown key (did you mean 'id'?)"),
        (case(files={"../a": "b"}),
         "[0].files: '../a' must be a path in the workspace, such as 'data/in.csv'"),
        (case(files={"a": 1}), '[0].files: a: must be text or {"source": "path"}, got 1'),
        (case(git=3), "[0].git: must be true or the path of a git bundle, got 3"),
        (case(expected={"must_contain": "a"}),
         "[0].expected.must_contain: unknown key (did you mean 'contains'?)"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_case_is_reported_in_one_line(entry: Any, problem: str) -> None:
    assert unplaced([entry]) == [problem]


UNUSABLE_ID = (
    "must be one line of printable characters, without '::', '[', ']', '##' or outer spaces"
)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a::b", UNUSABLE_ID),
        ("a[0]", UNUSABLE_ID),
        ("a\nb", UNUSABLE_ID),
        (" a", UNUSABLE_ID),
        ("a" * 101, "must have at most 100 characters"),
        ("", "must not be empty"),
        ("gate", "'gate' is the name of the skill's own gate: choose another"),
        (7, "must be a string, got 7"),
    ],
)
def test_an_id_that_cannot_be_a_name_in_pytest_is_refused(name: Any, what: str) -> None:
    assert unplaced([case(id=name)]) == [f"[0].id: {what}"]


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("contains", "", ": must not be empty"),
        ("contains", [], ": must not be empty"),
        ("contains", ["a", ""], "[1]: must not be empty"),
        ("contains", 3, ": must be a string or a list of strings, got 3"),
        ("contains", None, ": must be a string or a list of strings, got null"),
        ("not_contains", [3], "[0]: must be a string, got 3"),
        ("contains_any", "a", ': must be a list, got "a": write ["a"]'),
        ("contains_any", [], ": must not be empty"),
        ("regex", "a)", ": bad pattern: unbalanced parenthesis at character 2"),
        ("regex", "\b12\b",
         r": bad pattern: a backspace, which \b is in JSON and quoted YAML: write \\b"),
        ("regex", "a{99999999999}",
         ": bad pattern: the repetition number is too large"),
        ("not_regex", "", ": must not be empty"),
        ("json_schema", {}, ": must not be empty: every answer would be valid"),
        ("json_schema", 1, ": must be a JSON Schema (an object) or the path of one, got 1"),
        ("json_schema", "x.json",
         ": 'x.json': there are no files beside these cases: write the content here"),
        ("json_schema", {"type": "strin"},
         f": not a JSON Schema: $.type: 'strin' is not one of {TYPES}"),
        ("json_schema", {"properties": {"a": {"pattern": "("}}},
         ": not a JSON Schema: $.properties.a.pattern: '(' is not a 'regex'"),
        ("json_schema", {"properties": {"a": {"requierd": ["b"]}}},
         ": not a JSON Schema: unknown keyword 'requierd' (did you mean 'required'?)"),
        ("json_schema", {"anyOf": [{"$ref": "https://example.com/x"}]},
         ": $ref 'https://example.com/x' points outside the schema"),
        ("json_schema", {"$ref": "#/$defs/a"}, ": $ref '#/$defs/a' points outside the schema"),
        ("json_schema", {"$dynamicRef": "#node"},
         ": $dynamicRef '#node' points outside the schema"),
        ("json_schema", {"$defs": {"a": {"$id": "https://a.example/", "$ref": "#/b"}}},
         ": $ref '#/b' points outside the schema"),
        ("json_schema", {"title": "a", "$ref": "#/title"},
         ": $ref '#/title' leads to no schema: $: 'a' is not of type 'object', 'boolean'"),
        ("json_schema", {"allOf": [True], "$ref": "#/allOf/a"},
         ": $ref '#/allOf/a' points outside the schema"),
        ("compile", "cud", ": unknown language 'cud' (did you mean 'cuda'?)"),
        ("compile", 1,
         (": must be an object, got 1 (known: arch, file, files, flags, host, language, "
          "max_registers, max_shared_bytes, max_spill_bytes, ptx_contains, requires)")),
        ("run", None, ": must be an object, got null (known: code, file, language)"),
        ("compile", {}, ".language: missing"),
        ("compile", {"language": "c", "flag": []}, ".flag: unknown key (did you mean 'flags'?)"),
        ("compile", {"language": "c", "arch": "sm_90"}, ": 'arch' is for cuda only: remove it"),
        ("compile", {"language": "c", "requires": ["<a.h>"]},
         ".requires[0]: bad header '<a.h>': write it as in 'torch/extension.h', without brackets"),
        ("compile", {"language": "python", "requires": ["a.h"]},
         ": 'requires' names headers, and python has none: remove it"),
        ("compile", {"language": "cuda", "arch": "90"},
         ": bad arch '90': write it as in 'sm_90' or 'sm_90a'"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_check_is_reported_in_one_line(key: str, value: Any, problem: str) -> None:
    assert unplaced(expected(**{key: value})) == [f"[0].expected.{key}{problem}"]


@pytest.mark.parametrize("files", [{"../a.h": ""}, {"/a.h": ""}])
def test_a_header_outside_the_working_folder_is_refused(files: dict[str, str]) -> None:
    (problem,) = unplaced(expected(compile={"language": "c", "files": files}))

    assert problem.startswith("[0].expected.compile.files")


def test_a_pattern_that_python_only_warns_of_is_accepted() -> None:
    read_cases(json.dumps(expected(regex="[[a]")))


def test_a_pattern_nested_too_deeply_is_reported_in_one_line() -> None:
    (problem,) = unplaced(expected(regex="(" * 5000 + ")" * 5000))

    assert problem.startswith("[0].expected.regex: bad pattern: ")
