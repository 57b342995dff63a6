"""skill_meta.json: what a case may say, and the name that it gets."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pytest_upskill.cases.skill import Case, GateRule
from pytest_upskill.cases.skill_meta.reader import read_cases
from pytest_upskill.checks.code import Compile
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.checks.structure import JsonSchema
from pytest_upskill.checks.text import Contains, ContainsAny, NotContains, NotRegex, Regex

LONG = "Write a CUDA kernel that adds two vectors of floats, please"


def read(value: Any) -> tuple[Case, ...]:
    return read_cases(json.dumps(value, indent=1))[0]


def case(text: str = "Say hi", **more: Any) -> dict[str, Any]:
    return {"input": text, "expected": {"contains": "hi"}, **more}


def ids(*cases: dict[str, Any]) -> list[str]:
    return [read.id for read in read(list(cases))]


def checks(**expected: Any) -> tuple[object, ...]:
    return read([case(expected=expected)])[0].checks


@pytest.mark.parametrize(
    "document",
    [[case()], {"cases": [case()]}, {"tests": [case()], "metadata": {"version": "1.0"}}],
    ids=["a bare list", "cases", "upskill's tests"],
)
def test_a_file_of_each_shape_holds_the_same_case(document: Any) -> None:
    (found,) = read(document)

    assert (found.id, found.input) == ("say-hi", "Say hi")
    assert found.checks == (Contains(text="hi"),)


def test_a_file_that_upskill_wrote_is_read_as_it_is() -> None:
    nothing = {"context": None, "output_file": None, "validator": None, "validator_config": None}
    made = {"version": "1.0", "generated_by": "kimi", "license": None, "test_pass_rate": 1.0}

    cases = read(
        {
            "metadata": made,
            "tests": [
                {**nothing, "input": "One", "expected": {"contains": ["a", "B"]}},
                {**nothing, "input": "Two", "expected": {"contains": "c"}, "output_file": "x.yaml"},
                {**nothing, "input": "Three", "context": {"files": None}, "expected": {
                    "contains": ["d"]}},
            ],
        }
    )  # fmt: skip

    assert [found.checks for found in cases] == [
        (Contains(text="a"), Contains(text="B")),
        (Contains(text="c"),),
        (Contains(text="d"),),
    ]


def test_a_case_for_upskills_own_validator_is_skipped_and_says_why() -> None:
    (found,) = read([case(validator="hf_eval_yaml", output_file="a.yaml", validator_config={})])

    assert found.skip == (
        "validator: upskill's validators check files, and a single answer leaves none"
    )


def test_everything_a_case_can_say_is_read() -> None:
    text = json.dumps(
        {
            "$schema": "https://example.com/skill_meta.schema.json",
            "gate": {"min_lift": 0.2, "min_mean_pass_rate": 1},
            "cases": [
                case(
                    id="Full case",
                    context={"files": {"a.csv": "1,2"}},
                    min_pass_rate=0.5,
                    models=["haiku"],
                    tags="slow",
                )
            ],
        },
        indent=2,
    )

    cases, gate = read_cases(text)

    assert gate == GateRule(min_lift=0.2, min_mean_pass_rate=1)
    assert cases == (
        Case(
            id="Full case",
            input="Say hi",
            checks=(Contains(text="hi"),),
            files=(WorkspaceFile(name="a.csv", text="1,2"),),
            min_pass_rate=0.5,
            models=("haiku",),
            tags=("slow",),
            line=8,
            column=5,
        ),
    )


def test_checks_keep_the_order_of_the_file() -> None:
    found = checks(
        regex=["a", "b"],
        not_contains="c",
        contains_any=["d", "e"],
        json_schema={"type": "object"},
        contains="f",
        not_regex="g",
    )

    assert found == (
        Regex(pattern="a"),
        Regex(pattern="b"),
        NotContains(text="c"),
        ContainsAny(texts=("d", "e")),
        JsonSchema(schema={"type": "object"}),
        Contains(text="f"),
        NotRegex(pattern="g"),
    )


@pytest.mark.parametrize(
    ("entry", "check"),
    [
        ("cu", Compile(language="cuda")),
        ("C++", Compile(language="cpp")),
        (
            {"language": "cuda", "arch": "sm_90a", "flags": ["-O3"], "files": {"a.cuh": "//"}},
            Compile(language="cuda", arch="sm_90a", flags=("-O3",), files={"a.cuh": "//"}),
        ),
    ],
)
def test_a_compile_check_is_a_language_or_an_object(entry: Any, check: Compile) -> None:
    assert checks(compile=entry) == (check,)


def test_a_case_without_a_rate_takes_the_default_of_its_file() -> None:
    cases = read(
        {"defaults": {"min_pass_rate": 0.8}, "cases": [case("a"), case("b", min_pass_rate=1)]}
    )

    assert [found.min_pass_rate for found in cases] == [0.8, 1]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Parse a  CSV_file!", "parse-a-csv-file"),
        ("Größe der Datei", "größe-der-datei"),
        ("ﬁle ① 数据", "file-1-数据"),
        ("x" * 40, "x" * 40),
    ],
)
def test_a_short_input_is_its_own_name(text: str, name: str) -> None:
    assert ids(case(text)) == [name]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (LONG, "write-a-cuda-kernel-that-adds-two"),
        ("x" * 41, "x" * 40),
        ("???", "case"),
        ("Gate", "gate"),
    ],
)
def test_an_input_that_is_no_name_gets_a_hash(text: str, start: str) -> None:
    (name,) = ids(case(text))

    assert re.fullmatch(rf"{re.escape(start)}-[0-9a-f]{{6}}", name)


def test_a_name_does_not_depend_on_the_place_or_the_spelling_of_its_case() -> None:
    first = case(LONG, expected={"contains": "ä", "regex": "b"})
    same = {"expected": {"regex": "b", "contains": "ä"}, "input": LONG}

    assert ids(case("other"), first)[1] == ids(same)[0]


def test_cases_with_one_slug_are_told_apart_by_what_they_check() -> None:
    cases = [case("Say: hi"), case("say hi!"), case("say hi", id="say-hi")]

    names = ids(*cases)

    assert len(set(names)) == 3
    assert ids(*reversed(cases)) == list(reversed(names))
    assert names[2] == "say-hi"
