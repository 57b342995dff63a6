"""The format of ``skill_meta.json``: these models are its only definition.

Their docstrings, and those of their fields, are the descriptions in the published JSON Schema.
"""

from __future__ import annotations

import ast
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from pytest_upskill.checks import compile_options
from pytest_upskill.formats.skill_meta.text_checks import Entry, TextChecks
from pytest_upskill.formats.skill_meta.values import (
    FileName,
    FileNames,
    HeaderName,
    Id,
    Language,
    Rate,
    Runnable,
    Text,
    Texts,
    WorkspaceFiles,
    WorkspaceName,
    wrong,
)
from pytest_upskill.formats.statement_marks import Mark


def _check_expected(value: object) -> object:
    if value in (None, {}):
        raise ValueError("nothing to check: add a check such as 'contains'")
    return value


def _as_compile_entry(value: object) -> object:
    if isinstance(value, str):
        return {"language": value}
    if isinstance(value, dict):
        return value
    raise wrong(value, "a language or an object")


def _present(value: object) -> object:
    if value is None:
        raise wrong(value, "an object")
    return value


_OF_ANY_LANGUAGE = frozenset({"language", "flags", "files", "requires", "file"})
"""Keys of `CompileEntry` that are not for CUDA only."""


class CompileEntry(Entry):
    """How the answer's code is built."""

    language: Language
    """`c`, `cpp`, `cuda` or `python`."""
    arch: str | None = None
    """CUDA architecture such as `sm_90`, which is the default."""
    flags: list[str] = Field(default_factory=list)
    """Extra compiler flags, such as `-std=c++20`."""
    files: dict[FileName, str] = Field(default_factory=dict)
    """Headers that the answer's code may include: relative name to text."""
    requires: list[HeaderName] = Field(default_factory=list)
    """Headers of libraries without which the case is skipped, such as `torch/extension.h`."""
    host: bool = False
    """Whether the host's half of CUDA code must build too; it takes twice the time."""
    max_registers: Annotated[int, Field(ge=1)] | None = None
    """Maximum registers per thread of any kernel; toolkits differ by a few."""
    max_spill_bytes: Annotated[int, Field(ge=0)] | None = None
    """Maximum bytes of register spills, stores and loads together, of any function."""
    max_shared_bytes: Annotated[int, Field(ge=0)] | None = None
    """Maximum bytes of static shared memory of any kernel."""
    ptx_contains: Texts = Field(default_factory=list)
    """Strings that must all be in the PTX, such as `wgmma.mma_async`."""
    sass_contains: Texts = Field(default_factory=list)
    """Strings that must all be in the SASS, such as `HGMMA`; needs nvdisasm."""
    file: FileNames = Field(default_factory=list)
    """Files of an agent's workspace to build instead of the answer's code."""

    @model_validator(mode="after")
    def _check_options(self) -> CompileEntry:
        for name in sorted(self.model_fields_set - _OF_ANY_LANGUAGE):
            if self.language != "cuda":
                raise ValueError(f"{name!r} is for cuda only: remove it")
        if self.requires and self.language not in compile_options.C_FAMILY:
            raise ValueError(f"'requires' names headers, and {self.language} has none: remove it")
        problem = compile_options.check_flags(self.language, tuple(self.flags))
        if self.arch is not None:
            problem = problem or compile_options.check_arch(self.arch)
        if problem:
            raise ValueError(problem)
        return self


class RunEntry(Entry):
    """How the answer's code is tested."""

    language: Runnable
    """`python`."""
    code: Text
    """Test code, which fails by raising; it can use the names that the answer defines."""
    file: FileNames = Field(default_factory=list)
    """Files of an agent's workspace to test, on a copy of it, instead of the answer's code."""

    @model_validator(mode="after")
    def _check_code(self) -> RunEntry:
        if self.language == "python":
            try:
                ast.parse(self.code)
            except SyntaxError as error:
                raise ValueError(
                    f"'code' is not Python: line {error.lineno}: {error.msg}"
                ) from None
        return self


class Expected(TextChecks):
    """The checks of a case; every one must hold."""

    # A plugin may claim further keys; the reader rejects unclaimed ones.
    model_config = ConfigDict(
        extra="allow", json_schema_extra={"additionalProperties": False, "minProperties": 1}
    )

    compile: Annotated[
        CompileEntry | None,
        BeforeValidator(_as_compile_entry, json_schema_input_type=str | CompileEntry),
    ] = None
    """Language in which the answer's code must build, or an object with it and options."""
    run: Annotated[RunEntry | None, BeforeValidator(_present, json_schema_input_type=RunEntry)] = (
        None
    )
    """Test code that the answer's code must pass; both run in a sandbox."""
    judge: Texts = Field(default_factory=list)
    """Statements that must be true of the answer; the model of `--upskill-judge` decides."""
    file_exists: FileNames = Field(default_factory=list)
    """Files that must be in an agent's workspace after the run; `*` and `?` are wildcards."""
    file_contains: Annotated[dict[WorkspaceName, Texts], Field(min_length=1)] = Field(
        default_factory=dict
    )
    """File of an agent's workspace to the strings that must all be in it."""
    file: Annotated[
        dict[WorkspaceName, Annotated[TextChecks, BeforeValidator(_check_expected)]],
        Field(min_length=1),
    ] = Field(default_factory=dict)
    """File of an agent's workspace to the checks of its text."""
    triggered: Literal[True] | None = None
    """Whether the agent chose the skill; reported, never part of a pass rate."""
    read_file: FileNames = Field(default_factory=list)
    """Files of the skill that the agent should read; reported, never part of a pass rate."""
    ran_script: FileNames = Field(default_factory=list)
    """Scripts of the skill that a command should name; reported, never part of a pass rate."""

    @model_validator(mode="after")
    def _check_deciding(self) -> Expected:
        if self.model_fields_set <= PROCESS and not self.model_extra:
            raise ValueError(
                "decides nothing: only an agent with the skill can trigger it, read its files and "
                "run its scripts; add a check of the result, such as 'file_contains'"
            )
        return self


PROCESS = frozenset({"triggered", "read_file", "ran_script"})
"""Keys of `Expected` that are reported but decide nothing."""


class Context(Entry):
    """What is sent along with the input."""

    files: dict[Text, str] | None = None
    """Name to text; appended to the prompt, the same with and without the skill."""


class Provenance(Entry):
    """How a generated case was made."""

    teacher: str | None = None
    """The model that proposed it."""
    source: str | None = None
    """The name of the file or task that it was made from."""
    quote: str | None = None
    """The passage of the source that holds the answer."""
    unsourced: bool = False
    """Whether no passage of the source holds the answer."""
    screened: list[str] = Field(default_factory=list)
    """The models that did not always pass without the skill before the case was kept."""


_TRIGGERS = ("should_trigger", "expected_skill")


class CaseEntry(Entry):
    """A question to a model and the checks that its answer must pass."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [key]} for key in ("expected", *_TRIGGERS)]}
    )

    comment_: Annotated[str | list[str] | None, Field(alias="$comment")] = None
    """Notes for readers, as text or as a list of lines: JSON has no comments."""
    id: Id | None = None
    """Unique name of the case; by default it is derived from the input."""
    input: Text
    """The user's message."""
    expected: Annotated[
        Expected | None, BeforeValidator(_check_expected, json_schema_input_type=Expected)
    ] = None
    """The checks of the answer; may be missing where a trigger is stated."""
    should_trigger: Annotated[bool, Field(default=None)]
    """Whether an agent that sees all skills should choose this one for the input."""
    expected_skill: Texts | None = None
    """Name of the skill that an agent should choose, or several that are right; null for none."""
    context: Context | None = None
    """What is sent along with the input."""
    workspace: WorkspaceFiles | None = None
    """What an agent finds in its workspace: name to text, or a folder, relative to this file."""
    max_turns: Annotated[int, Field(ge=1, le=200)] | None = None
    """Replies that an agent's model may need for this case; 20 without it."""
    reference: Text | None = None
    """An answer known to be right, for the judge alone, with every answer of every arm."""
    statements: dict[Annotated[str, Field(pattern="^[1-9][0-9]*$")], Mark] | None = None
    """Statements of `judge` to exclude from every arm: number, from 1, to `agent` or `vacuous`."""
    min_pass_rate: Rate | None = None
    """Share of the runs that must pass."""
    models: Texts | None = None
    """Labels of the models this case is for; by default all."""
    tags: Texts | None = None
    """Words that select the case, as in `pytest -k slow`."""
    train: bool = False
    """Whether the skill was written or chosen with this case: it runs and guards against
    regressions, but is left out of the lift."""
    provenance: Provenance | None = None
    """How the case was made; notes for readers and for `pytest-upskill refine`."""
    output_file: str | None = None
    """Ignored, as it belongs to `validator`."""
    validator: str | None = None
    """Skips the case: upskill's validators inspect files, and a single answer leaves none."""
    validator_config: dict[str, Any] | None = None
    """Ignored, as it belongs to `validator`."""

    @model_validator(mode="after")
    def _check_purpose(self) -> CaseEntry:
        if self.expected is None and not self.model_fields_set.intersection(_TRIGGERS):
            raise ValueError(
                "nothing to check: add 'expected', or 'should_trigger' or 'expected_skill'"
            )
        return self


class Gate(Entry):
    """What the skill must reach on every model."""

    min_lift: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Pass rate with the skill minus without it."""
    min_pass_rate: Rate | None = None
    """Pass rate with the skill."""
    min_recall: Rate | None = None
    """Share of the queries that should trigger the skill for which an agent chooses it."""
    max_false_triggers: Rate | None = None
    """Share of the queries that should not trigger the skill for which an agent chooses it."""


class Defaults(Entry):
    """Values for every case that does not set its own."""

    min_pass_rate: Rate | None = None
    """Share of the runs that must pass."""


class CaseFile(Entry):
    """Test cases of an agent skill."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"properties": {key: True}, "required": [key]} for key in ("cases", "tests")]
        }
    )

    schema_: Annotated[str | None, Field(alias="$schema")] = None
    """Where editors find the schema of this file."""
    comment_: Annotated[str | list[str] | None, Field(alias="$comment")] = None
    """Notes for readers, as text or as a list of lines: JSON has no comments."""
    metadata: dict[str, Any] | None = None
    """Ignored: upskill records here how it generated the skill."""
    gate: Gate = Field(default_factory=Gate)
    """What the skill must reach on every model."""
    defaults: Defaults = Field(default_factory=Defaults)
    """Values for every case that does not set its own."""
    cases: Annotated[list[CaseEntry], Field(min_length=1)] = Field(default_factory=list)
    """The test cases."""
    tests: Annotated[list[CaseEntry], Field(min_length=1)] = Field(default_factory=list)
    """The test cases, as upskill calls them."""

    @model_validator(mode="after")
    def _check_cases(self) -> CaseFile:
        if ("cases" in self.model_fields_set) == ("tests" in self.model_fields_set):
            raise ValueError("must have either 'cases' or 'tests'")
        return self
