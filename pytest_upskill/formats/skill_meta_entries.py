"""The format of ``skill_meta.json``: these models are its only definition."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from pytest_upskill import compile_options
from pytest_upskill.checks import compile_pattern
from pytest_upskill.checks.paths import parse_path
from pytest_upskill.extensions import Extensions
from pytest_upskill.formats.ids import MAX_ID
from pytest_upskill.formats.problems import shown

ReadSchema = Callable[[str], Any]
"""Reads the JSON file that a ``json_schema`` names; raises ValueError with one line."""


def _listed(value: object) -> object:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return value
    raise _wrong(value, "a string or a list of strings")


def _check_id(value: str) -> str:
    if "::" in value or "[" in value or "]" in value:
        raise ValueError("must not hold '::', '[' or ']': pytest's node ids give them a meaning")
    if not value.isprintable() or value != value.strip():
        raise ValueError("must be one line of printable characters, without blanks around it")
    if value == "gate":
        raise ValueError("'gate' is the name of the skill's own gate: choose another")
    return value


def _check_pattern(value: str) -> str:
    try:
        compile_pattern(value)
    except re.error as error:
        at = "" if error.pos is None else f" at character {error.pos + 1}"
        raise ValueError(f"bad pattern: {error.msg}{at}") from None
    except (RecursionError, OverflowError) as error:
        raise ValueError(f"bad pattern: {error}") from None
    return value


def _check_path(value: str) -> str:
    parse_path(value)
    return value


def _extensions(info: ValidationInfo) -> Extensions:
    assert info.context is not None
    extensions = info.context["extensions"]
    assert isinstance(extensions, Extensions)
    return extensions


def _check_language(value: str, info: ValidationInfo) -> str:
    extensions = _extensions(info)
    language = extensions.language(value)
    if language is None:
        known = extensions.known_languages
        raise ValueError(f"unknown language {value!r}{suggestion(value, known)}")
    return language


def _check_runnable(value: str, info: ValidationInfo) -> str:
    language = _check_language(value, info)
    runnable = tuple(sorted(_extensions(info).runnable))
    if language not in runnable:
        raise ValueError(f"nothing runs {language}: write {' or '.join(runnable)}")
    return language


def _check_validator(value: str | None) -> None:
    if value is not None:
        raise ValueError("no named validators here: check with 'regex', 'compile' or another")


def _check_expected(value: object) -> object:
    if value in (None, {}):
        raise ValueError("nothing to check: add a check such as 'contains'")
    return value


def _as_compile_entry(value: object) -> object:
    if isinstance(value, str):
        return {"language": value}
    if isinstance(value, dict):
        return value
    raise _wrong(value, "a language or an object")


def _read_schema(value: object, info: ValidationInfo) -> object:
    # Slow to import: only the cases that need it pay for the schema library.
    from pytest_upskill.schemas import check_schema

    assert info.context is not None
    schema = info.context["read_schema"](value) if isinstance(value, str) else value
    if not isinstance(schema, dict):
        raise _wrong(schema, "a JSON Schema (an object) or the path of one")
    if not schema:
        raise ValueError("must not be empty: every answer would be valid")
    check_schema(schema)
    return schema


def _check_file_name(value: str) -> str:
    if problem := compile_options.check_file(value):
        raise ValueError(problem)
    return value


def suggestion(word: str, known: tuple[str, ...]) -> str:
    """Write what ``word`` was probably meant to be, in brackets."""
    if close := get_close_matches(word, known, n=1):
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(sorted(known))})"


def _wrong(value: object, wanted: str) -> ValueError:
    return ValueError(f"must be {wanted}, got {shown(value)}")


Text = Annotated[str, Field(min_length=1)]
Pattern = Annotated[Text, AfterValidator(_check_pattern)]
Texts = Annotated[
    list[Text],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=Text | list[Text]),
]
Patterns = Annotated[
    list[Pattern],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=Text | list[Text]),
]
Values = Annotated[dict[Annotated[str, AfterValidator(_check_path)], Any], Field(min_length=1)]
Rate = Annotated[float, Field(ge=0, le=1)]


class Entry(BaseModel):
    """An object of the file: unknown keys and values of a wrong type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class CompileEntry(Entry):
    """How the answer's code is built."""

    language: Annotated[str, AfterValidator(_check_language)]
    """`c`, `cpp`, `cuda` or `python`."""
    arch: str | None = None
    """CUDA architecture such as `sm_90`, which is the default."""
    flags: list[str] = []
    """Extra compiler flags, such as `-std=c++20`."""
    files: dict[Annotated[str, AfterValidator(_check_file_name)], str] = {}
    """Headers that the answer's code may include: relative name to text."""
    host: bool = False
    """Whether the host's half of CUDA code must build too; it takes twice the time."""
    max_registers: Annotated[int, Field(ge=1)] | None = None
    """Registers that a thread of any kernel may use; toolkits differ by a few."""
    max_spill_bytes: Annotated[int, Field(ge=0)] | None = None
    """Bytes of registers that any function may store and load elsewhere, together."""
    max_shared_bytes: Annotated[int, Field(ge=0)] | None = None
    """Bytes of static shared memory that any kernel may use."""
    ptx_contains: Texts = []
    """Strings that must all be in the PTX, such as `wgmma.mma_async`."""
    sass_contains: Texts = []
    """Strings that must all be in the SASS, such as `HGMMA`; needs nvdisasm."""

    @model_validator(mode="after")
    def _check_options(self) -> CompileEntry:
        for name in sorted(self.model_fields_set - {"language", "flags", "files"}):
            if self.language != "cuda":
                raise ValueError(f"{name!r} is for cuda only: remove it")
        problem = compile_options.check_flags(self.language, tuple(self.flags))
        if self.arch is not None:
            problem = problem or compile_options.check_arch(self.arch)
        if problem:
            raise ValueError(problem)
        return self


class RunEntry(Entry):
    """What the answer's code is run with."""

    language: Annotated[str, AfterValidator(_check_runnable)]
    """`python`."""
    code: Text
    """Test code, which fails by raising; it finds the names that the answer defines."""

    @model_validator(mode="after")
    def _check_code(self) -> RunEntry:
        if self.language == "python":
            try:
                ast.parse(self.code)
            except SyntaxError as error:
                raise ValueError(f"'code' is no Python: line {error.lineno}: {error.msg}") from None
        return self


class Expected(Entry):
    """The checks of a case; every one must hold."""

    # A plugin may claim further keys; the reader refuses those that none does.
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    contains: Texts = []
    """Strings that must all be in the answer; case does not matter."""
    not_contains: Texts = []
    """Strings of which none may be in the answer; case does not matter."""
    contains_any: Annotated[list[Text], Field(min_length=1)] = []
    """Strings of which at least one must be in the answer; case does not matter."""
    regex: Patterns = []
    """Python regular expressions that must all be found in the answer."""
    not_regex: Patterns = []
    """Python regular expressions of which none may be found in the answer."""
    json_schema: Annotated[
        dict[str, Any],
        BeforeValidator(_read_schema, json_schema_input_type=Text | dict[str, Any]),
    ] = {}
    """JSON Schema (2020-12) of the answer's JSON block, or its path, relative to this file."""
    toml: Values = {}
    """What must stand where in the answer's TOML: path such as `general.backends` to value."""
    yaml: Values = {}
    """What must stand where in the answer's YAML: path such as `jobs.test.steps[0]` to value."""
    json_: Annotated[Values, Field(alias="json")] = {}
    """What must stand where in the answer's JSON: path such as `items[0].'a.b'` to value."""
    compile: Annotated[
        CompileEntry | None,
        BeforeValidator(_as_compile_entry, json_schema_input_type=str | CompileEntry),
    ] = None
    """The language in which the answer's code must build, or how it is built."""
    run: RunEntry | None = None
    """Test code that the answer's code must pass; both are run in a sandbox."""
    judge: Texts = []
    """Statements that must be true of the answer; the model of `--upskill-judge` decides."""


class Context(Entry):
    """What is sent along with the input."""

    files: dict[Text, str] | None = None
    """Name to text; appended to the prompt, the same with and without the skill."""


class CaseEntry(Entry):
    """One question to a model and the checks its answer must hold."""

    id: Annotated[Text, Field(max_length=MAX_ID), AfterValidator(_check_id)] | None = None
    """Unique name of the case; without one it is made of the input."""
    input: Text
    """The user's message."""
    expected: Annotated[Expected, BeforeValidator(_check_expected, json_schema_input_type=Expected)]
    """The checks of the answer."""
    context: Context | None = None
    """What is sent along with the input."""
    min_pass_rate: Rate | None = None
    """Share of the runs that must pass."""
    models: Texts | None = None
    """Labels of the only models this case is for."""
    tags: Texts | None = None
    """Words to select cases by, as in `pytest -k slow`."""
    output_file: str | None = None
    """Ignored: upskill reads it for named validators only."""
    validator: Annotated[str | None, AfterValidator(_check_validator)] = None
    """Refused: there are no named validators."""
    validator_config: dict[str, Any] | None = None
    """Ignored, as it belongs to `validator`."""


class Gate(Entry):
    """What the skill must reach on every model."""

    min_lift: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Pass rate with the skill minus without it."""
    min_pass_rate: Rate | None = None
    """Pass rate with the skill."""


class Defaults(Entry):
    """What holds for every case that does not say otherwise."""

    min_pass_rate: Rate | None = None
    """Share of the runs that must pass."""


class CaseFile(Entry):
    """Test cases of an agent skill."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["cases"]}, {"required": ["tests"]}]}
    )

    schema_: Annotated[str | None, Field(alias="$schema")] = None
    """Where editors find the schema of this file."""
    metadata: dict[str, Any] | None = None
    """Ignored: upskill notes here how it made the skill."""
    gate: Gate = Gate()
    """What the skill must reach on every model."""
    defaults: Defaults = Defaults()
    """What holds for every case that does not say otherwise."""
    cases: Annotated[list[CaseEntry], Field(min_length=1)] = []
    """The test cases."""
    tests: Annotated[list[CaseEntry], Field(min_length=1)] = []
    """The test cases, as upskill calls them."""

    @model_validator(mode="after")
    def _check_cases(self) -> CaseFile:
        if bool(self.cases) == bool(self.tests):
            raise ValueError("must hold either 'cases' or 'tests'")
        return self
