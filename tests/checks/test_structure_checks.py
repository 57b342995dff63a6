"""Checks of the value at a path in JSON, TOML or YAML."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.structure import ValueAtPath, parse_path

BUILD = """Put this into `build.toml`:

```toml
[general]
name = "relu"
backends = ["cuda"]

[kernel."relu.fast"]
capability = "9.0"
src = ["a.cu", "b.cu"]
since = 2026-01-31
```
"""
BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 80)}]\n" for n in range(1, 12)
)
MERGES = "m0: &m0 {k: 1}\n" + "".join(
    f"m{n}: &m{n}\n  <<: [{', '.join([f'*m{n - 1}'] * 9)}]\n" for n in range(1, 9)
)


def check(name: Literal["json", "toml", "yaml"], path: str, value: Any, text: str) -> CheckResult:
    return ValueAtPath(name=name, path=path, value=value).check(text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("general.backends", ["cuda"]),
        ("general.backends[0]", "cuda"),
        ("kernel.'relu.fast'.src[-1]", "b.cu"),
        ('kernel."relu.fast".src[1]', "b.cu"),
        ("kernel.'relu.fast'.since", "2026-01-31"),
        ("general", {"backends": ["cuda"], "name": "relu"}),
    ],
)
def test_a_value_is_found_at_its_path(path: str, value: Any) -> None:
    result = check("toml", path, value, BUILD)

    assert result.passed
    assert result.message.startswith(f"toml {path}: is ")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("general.backends", ["cpu"], "is ['cuda'], not ['cpu']"),
        ("kernel.'relu.fast'.capability", 9.0, "is the text '9.0', not the number 9.0"),
        ("general.cuda.minver", 1, "no 'cuda' in general, which has name, backends"),
        ("generale", 1, "no 'generale' in the top level, which has general, kernel"),
        ("general.name.x", 1, "general.name is the text 'relu', not a table"),
        ("general[0]", 1, "general is {'backends': ['cuda'], 'name': 'relu'}, not a list"),
        ("general.backends[3]", 1, "no [3] in general.backends, which has 1 item"),
    ],
)
def test_a_failure_names_the_path_and_what_stood_there(path: str, value: Any, message: str) -> None:
    result = check("toml", path, value, BUILD)

    assert not result.passed
    assert result.name == "toml"
    assert result.message == f"toml {path}: {message} (answer line 4)"


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        ("9", 9.0, True),
        ("9.0", 9, True),
        ("true", True, True),
        ("true", 1, False),
        ("1", True, False),
        ("0", False, False),
        ("null", None, True),
        ('"null"', None, False),
        ('["a", "b"]', ["b", "a"], False),
        ('["a"]', ["a", "b"], False),
        ('{"a": [{"b": 1}]}', {"a": [{"b": 1}]}, True),
        ('{"a": 1, "b": 2}', {"a": 1}, False),
        ('"\u00e9"', "é", True),
    ],
)
def test_values_are_equal_as_json_is(found: str, wanted: Any, same: bool) -> None:
    assert check("json", "at", wanted, f'{{"at": {found}}}').passed is same


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("on.push.branches", ["main"]),
        ("jobs.80", "number"),
        ("jobs.build.steps[0].run", "make"),
        ("steps[0].run", "second document"),
    ],
)
def test_yaml_is_read_in_every_document_and_by_its_own_keys(path: str, value: Any) -> None:
    text = (
        "```yaml\non:\n  push:\n    branches: [main]\njobs:\n  80: number\n  build: &b\n"
        "    steps:\n    - run: make\n---\nsteps:\n- {run: second document}\n```\n"
    )

    assert check("yaml", path, value, text).passed


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("toml", "```toml\na = 1\n```\n```toml\na = 2\nb = 3\n```", "answer line 5"),
        ("toml", "```toml title=x.toml\na = 2\n```\n```toml title=y.toml\nc = 1\n```", "x.toml"),
        ("toml", "```python\na = 2\n```\n```\na = 2\n```", "answer line 5"),
        ("yaml", "a: 2", "answer line 1"),
        ("json", 'Sure:\n```\n{"a": 2}\n```', "answer line 3"),
        ("yaml", "`x.yml`\n```\na: 2\n```", "x.yml"),
    ],
)
def test_the_right_block_is_read(
    name: Literal["json", "toml", "yaml"], text: str, place: str
) -> None:
    result = check(name, "a", 2, text)

    assert result.passed
    assert f"({place})" in result.message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("toml", "```toml\n[a]\nb = \n```", "invalid TOML in line 3 of the answer: Invalid value"),
        (
            "yaml",
            "```yaml\na: [1\n```",
            "invalid YAML in line 3 of the answer: expected ',' or ']'",
        ),
        ("yaml", "```yaml\na: !!python/name:os.system x\n```", "could not determine a constructor"),
        (
            "json",
            "```json\n{,}\n```",
            "invalid JSON in line 2 of the answer: Expecting property name",
        ),
        ("yaml", "Just prose.", "no YAML in the answer (blocks: none)"),
        ("toml", "```c\nx\n```", "no TOML in the answer (blocks: c)"),
        ("yaml", f"```yaml\n{'[' * 300}\n```", "nested too deeply"),
        ("toml", f"```toml\na = {'[' * 9000}\n```", "nested too deeply"),
        ("yaml", f"```yaml\n{MERGES}```", "no 'a' in the top level"),
        ("yaml", f"```yaml\na: &a 1\nb: [{'*a,' * 2000}]\n```", "it has over 1000 aliases"),
        ("yaml", "```yaml\na: 2026-13-45\n```", "month must be in 1..12"),
    ],
    ids=lambda value: value[:12],
)
def test_what_cannot_be_read_fails_with_its_line(
    name: Literal["json", "toml", "yaml"], text: str, message: str
) -> None:
    result = check(name, "a", 1, text)

    assert not result.passed
    assert message in result.message
    assert len(result.message) <= 200


@pytest.mark.parametrize("text", [BOMB, "a11: &a [*a]"], ids=["laughs", "itself"])
def test_aliases_that_multiply_are_shown_in_brief(text: str) -> None:
    result = check("yaml", "a11", [["y"]], f"```yaml\n{text}\n```")

    assert not result.passed
    assert len(result.message) <= 200


@pytest.mark.parametrize(
    ("path", "at"),
    [("", 1), (".a", 1), ("a..b", 2), ("a[", 2), ("a[x]", 2), ("a b", 2), ("a.'b", 2), ("a.", 2),
     ("[0]a", 4), ('"a', 1)],
)  # fmt: skip
def test_a_bad_path_is_refused_with_its_position(path: str, at: int) -> None:
    with pytest.raises(ValueError, match=f"^bad path at character {at}: "):
        parse_path(path)
