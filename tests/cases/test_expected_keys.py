"""Keys of ``expected`` in a case file: what they make, and what is refused."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from typing import Any

import pytest

from pytest_upskill.cases.skill_meta.expected import TextChecks, keys_of
from pytest_upskill.cases.skill_meta.reader import read_cases
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.code import AtMost, Compile, Instruction, Run
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.structure import ValueAtPath


def checks(expected: dict[str, Any]) -> tuple[AnyCheck, ...]:
    text = json.dumps([{"id": "a", "input": "Why?", "expected": expected}])
    (case,), _ = read_cases(text)
    return case.checks


def problem(expected: dict[str, Any]) -> str:
    with pytest.raises(BadFile) as caught:
        checks(expected)
    (found,) = caught.value.problems
    return f"{found.where}: {found.what}"


def test_every_path_is_a_separate_check() -> None:
    made = checks({"toml": {"a.b": [1], "c": "x"}, "json": {"d[0]": None}, "yaml": {"e": True}})

    assert made == (
        ValueAtPath(name="toml", path="a.b", value=[1]),
        ValueAtPath(name="toml", path="c", value="x"),
        ValueAtPath(name="json", path="d[0]", value=None),
        ValueAtPath(name="yaml", path="e", value=True),
    )


def test_limits_and_instructions_belong_to_one_build() -> None:
    made = checks(
        {
            "compile": {
                "language": "cuda",
                "host": True,
                "max_spill_bytes": 0,
                "max_registers": 64,
                "ptx_contains": "wgmma",
            }
        }
    )

    assert made == (
        Compile(
            language="cuda",
            host=True,
            requires=(
                AtMost(name="max_registers", most=64),
                AtMost(name="max_spill_bytes", most=0),
                Instruction(text="wgmma"),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"toml": {}}, "[0].expected.toml: must not be empty"),
        ({"yaml": ["a"]},
         '[0].expected.yaml: must be an object with a name for each value, got ["a"]'),
        ({"json": {"a..b": 1}}, '[0].expected.json["a..b"]: bad path at character 2: ...'),
        ({"compile": {"language": "c", "max_registers": 9}},
         "[0].expected.compile: 'max_registers' is for cuda only: remove it"),
        ({"compile": {"language": "cuda", "max_registers": -1}},
         "[0].expected.compile.max_registers: must be at least 1, got -1"),
        ({"compile": {"language": "cuda", "max_registers": "9"}},
         '[0].expected.compile.max_registers: must be a whole number, got "9"'),
        ({"jsn": {"a": 1}}, "[0].expected.jsn: unknown key (did you mean 'json'?)"),
        (
            {"tool_called": {"name": "bash", "at_least": 2}},
            "[0].expected.tool_called.at_least: unknown key (did you mean 'least'?)",
        ),
        (
            {"tool_order": [{"name": "a"}, {"nme": "b"}]},
            "[0].expected.tool_order[1].nme: unknown key (did you mean 'name'?)",
        ),
        (
            {"git": {"message": {"regexp": "x"}}},
            "[0].expected.git.message.regexp: unknown key (did you mean 'regex'?)",
        ),
    ],
)  # fmt: skip
def test_options_that_cannot_apply_are_refused(expected: dict[str, Any], message: str) -> None:
    assert fnmatch(problem(expected), message.replace("[", "[[]").replace("...", "*"))


def test_test_code_and_statements_are_checks() -> None:
    made = checks(
        {"run": {"language": "py", "code": "assert f() == 1"}, "judge": ["It is kind.", "Short."]}
    )

    assert made == (
        Run(language="python", code="assert f() == 1"),
        Judge(statement="It is kind."),
        Judge(statement="Short."),
    )


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"run": {"language": "c", "code": "x"}},
         "[0].expected.run.language: c cannot be run: write python"),
        ({"run": {"language": "cobol", "code": "x"}},
         "[0].expected.run.language: unknown language 'cobol' ..."),
        ({"run": {"language": "python", "code": "assert ("}},
         "[0].expected.run: 'code' is not Python: line 1: '(' was never closed"),
        ({"run": {"language": "python"}}, "[0].expected.run.code: missing"),
        ({"run": "python"},
         '[0].expected.run: must be an object, got "python" (known: code, file, language)'),
        ({"judge": []}, "[0].expected.judge: must not be empty"),
    ],
)  # fmt: skip
def test_bad_test_code_and_statements_are_refused(expected: dict[str, Any], message: str) -> None:
    assert fnmatch(problem(expected), message.replace("[", "[[]").replace("...", "*"))


def test_a_key_that_would_check_nothing_is_refused() -> None:
    class Forgetful(TextChecks):
        max_words: int = 0

    with pytest.raises(TypeError, match=r"Forgetful\.max_words: mark it with Makes"):
        keys_of(Forgetful)
