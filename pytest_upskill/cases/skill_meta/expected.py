"""The format of ``expected``: each field is a key, its JSON Schema and how its checks are made."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pytest_upskill.cases.skill_meta import values
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.calls import CallOf, ToolCalled, ToolOrder
from pytest_upskill.checks.code import AtMost, Compile, Figure, Instruction, Run
from pytest_upskill.checks.extensions import Custom
from pytest_upskill.checks.files import FileExists, Git, InFile, ProcessCheck, RunsCommand
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.structure import JsonSchema, ValueAtPath
from pytest_upskill.checks.text import Check, Contains, ContainsAny, NotContains, NotRegex, Regex


class Entry(BaseModel):
    """An object of the file: unknown keys and values of a wrong type are errors."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        defer_build=True,  # built once, as part of CaseFile
        model_title_generator=lambda model: re.sub(r"\B(?=[A-Z])", " ", model.__name__).lower(),
    )


@dataclass(frozen=True, slots=True)
class Makes:
    """Mark of a key: how its value becomes checks."""

    kind: type[Check]
    """What the key is called elsewhere; `Check` if nothing is known."""
    checks: Callable[[Any], Iterable[Any]]


def one_each(kind: type[Any]) -> Makes:
    """Mark a key whose value is a list, each item of which is a check."""
    return Makes(kind, lambda given: map(kind, given))


def _at_paths(name: Literal["json", "toml", "yaml"]) -> Makes:
    return Makes(
        ValueAtPath,
        lambda given: [ValueAtPath(name=name, path=path, value=v) for path, v in given.items()],
    )


@cache
def keys_of(model: type[Entry]) -> Mapping[str, tuple[str, Makes]]:
    """Return the keys of an object of checks, with the field of each and its mark.

    Raises:
        TypeError: A field has no mark, so that its key would check nothing, or allows null.
    """
    keys = {}
    for name, field in model.model_fields.items():
        mark = next((mark for mark in field.metadata if isinstance(mark, Makes)), None)
        if mark is None:
            raise TypeError(f"{model.__name__}.{name}: mark it with Makes")
        if type(None) in get_args(field.annotation):
            raise TypeError(f"{model.__name__}.{name}: Field(default=None) without '| None'")
        keys[field.alias or name] = name, mark
    return keys


def _made(entry: Entry | None, model: type[Entry], keys: Iterable[str] = ()) -> Iterator[Any]:
    """Make the checks of some keys of a model, by default of all, that an object has."""
    fields = keys_of(model)
    for name, mark in map(fields.__getitem__, keys or fields):
        if entry is not None and name in entry.model_fields_set:
            yield from mark.checks(getattr(entry, name))


def check_expected(value: object) -> object:
    """Raise ValueError if an object of checks is empty, or only a text."""
    if value in (None, {}):
        raise ValueError("nothing to check: add a check such as 'contains'")
    if isinstance(value, str):
        raise values.wrong_value(value, 'an object such as {"contains": "a text"}')
    return value


class TextChecks(Entry):
    """Checks of a text; every one must hold."""

    contains: Annotated[values.Texts, one_each(Contains)] = Field(default_factory=list)
    """Strings that must all be in the answer; case does not matter."""
    not_contains: Annotated[values.Texts, one_each(NotContains)] = Field(default_factory=list)
    """Strings that must not be in the answer; case does not matter."""
    contains_any: Annotated[
        list[values.Text],
        Field(min_length=1),
        Makes(ContainsAny, lambda texts: [ContainsAny(texts=tuple(texts))]),
    ] = Field(default_factory=list)
    """Strings of which at least one must be in the answer; case does not matter."""
    regex: Annotated[values.Patterns, one_each(Regex)] = Field(default_factory=list)
    """Python regular expressions that must all be found in the answer."""
    not_regex: Annotated[values.Patterns, one_each(NotRegex)] = Field(default_factory=list)
    """Python regular expressions that must not be found in the answer."""
    json_schema: Annotated[
        values.Schema, Makes(JsonSchema, lambda schema: [JsonSchema(schema=schema)])
    ] = Field(default_factory=dict)
    """JSON Schema (2020-12) of the answer's JSON block, or its path relative to this file."""
    toml: Annotated[values.Values, _at_paths("toml")] = Field(default_factory=dict)
    """Values that the answer's TOML must have: path, such as `general.backends`, to value."""
    yaml: Annotated[values.Values, _at_paths("yaml")] = Field(default_factory=dict)
    """Values that the answer's YAML must have: path, such as `jobs.test.steps[0]`, to value."""
    json_: Annotated[values.Values, _at_paths("json"), Field(alias="json")] = Field(
        default_factory=dict
    )
    """Values that the answer's JSON must have: path, such as `items[0].'a.b'`, to value."""


def _text_as(key: str) -> Callable[[object], object]:
    """Return a validator that reads a text as an object with that text under a key."""
    return lambda value: {key: value} if isinstance(value, str) else value


_PROCESS = ("triggered", "read_file", "ran_script")
"""Keys of `Expected` that are reported but decide nothing."""


class CompileEntry(Entry):
    """How the answer's code is built."""

    language: values.Language
    """`c`, `cpp`, `cuda` or `python`."""
    arch: str | None = None
    """CUDA architecture such as `sm_90`, which is the default."""
    flags: list[str] = Field(default_factory=list)
    """Extra compiler flags, such as `-std=c++20`."""
    files: dict[values.HeaderName, str] = Field(default_factory=dict)
    """Headers that the answer's code may include: relative name to text."""
    requires: list[values.HeaderName] = Field(default_factory=list)
    """Headers of libraries without which the case is skipped, such as `torch/extension.h`."""
    host: bool = False
    """Whether the host's half of CUDA code must build too; it takes twice the time."""
    max_registers: Annotated[int, Field(ge=1)] | None = None
    """Maximum registers per thread of any kernel; toolkits differ by a few."""
    max_spill_bytes: Annotated[int, Field(ge=0)] | None = None
    """Maximum bytes of register spills, stores and loads together, of any function."""
    max_shared_bytes: Annotated[int, Field(ge=0)] | None = None
    """Maximum bytes of static shared memory of any kernel."""
    ptx_contains: values.Texts = Field(default_factory=list)
    """Strings that must all be in the PTX, such as `wgmma.mma_async`."""
    file: values.FileNames = Field(default_factory=list)
    """Files of an agent's workspace to build instead of the answer's code."""

    @model_validator(mode="after")
    def _check_options(self) -> CompileEntry:
        if problem := self.check().problem:
            raise ValueError(problem)
        return self

    def check(self) -> Compile:
        """Make the check."""
        limits = (
            AtMost(name=name, most=most)
            for name in get_args(Figure)
            if (most := getattr(self, name)) is not None
        )
        instructions = (Instruction(text=text) for text in self.ptx_contains)
        return Compile(
            language=self.language,
            arch=self.arch,
            flags=tuple(self.flags),
            files=self.files,
            headers=tuple(self.requires),
            host=self.host,
            requires=(*limits, *instructions),
            file=tuple(self.file),
        )


class RunEntry(Entry):
    """How the answer's code is tested."""

    language: values.Runnable
    """`python`."""
    code: values.Text
    """Test code, which fails by raising; it can use the names that the answer defines."""
    file: values.FileNames = Field(default_factory=list)
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

    def check(self) -> Run:
        """Make the check."""
        return Run(language=self.language, code=self.code, file=tuple(self.file))


class CommandEntry(TextChecks):
    """A command in a copy of an agent's workspace, and checks of its output."""

    run: values.Text
    """The command, in a shell in the sandbox, for at most 60 s."""
    exit_code: Annotated[int, Field(ge=0, le=255)] = 0
    """The exit status that it must have."""

    def check(self) -> RunsCommand:
        """Make the check."""
        output = tuple(_made(self, TextChecks))
        return RunsCommand(command=self.run, exit_code=self.exit_code, output=output)


class GitEntry(Entry):
    """The state of the git repository in an agent's workspace."""

    branch: values.Text | None = None
    """The current branch; `*` and `?` are wildcards."""
    clean: bool | None = None
    """Whether nothing is uncommitted or untracked."""
    message: Annotated[TextChecks | None, BeforeValidator(check_expected)] = None
    """Checks of the message of the last commit."""
    staged: values.FileNames = Field(default_factory=list)
    """Files whose changes are staged; `*` and `?` are wildcards."""


class CallEntry(Entry):
    """Which calls of tools are meant."""

    name: values.Texts = Field(default_factory=lambda: ["*"])
    """Names of tools; `*` and `?` are wildcards, and `bash` is any agent's shell."""
    pattern: values.Pattern = ""
    """Python regular expression that one of the arguments must contain."""

    @property
    def call(self) -> CallOf:
        """The calls that are meant."""
        return CallOf(names=tuple(self.name), pattern=self.pattern)


class CallCountEntry(CallEntry):
    """How often a tool is called."""

    least: Annotated[int, Field(ge=0)] | None = None
    """Minimum number of calls; 1 by default, or 0 beside `most`."""
    most: Annotated[int, Field(ge=0)] | None = None
    """Maximum number of calls."""

    @property
    def check(self) -> ToolCalled:
        """The check of their number: whoever sets a maximum alone does not demand a call."""
        least = int(self.most is None) if self.least is None else self.least
        return ToolCalled(calls=(self.call,), least=least, most=self.most)

    @model_validator(mode="after")
    def _check_range(self) -> CallCountEntry:
        if self.most is not None and self.most < (self.least or 0):
            raise ValueError("'most' is less than 'least'")
        return self


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _contained(files: Mapping[str, Iterable[str]]) -> list[InFile]:
    return [
        InFile(name="file_contains", file=file, check=Contains(text=text))
        for file, texts in files.items()
        for text in texts
    ]


def _of_files(files: Mapping[str, TextChecks]) -> list[InFile]:
    return [
        InFile(file=file, check=check)
        for file, texts in files.items()
        for check in _made(texts, TextChecks)
    ]


def _git(entry: GitEntry) -> list[Git]:
    return [
        *([Git(branch=entry.branch)] if entry.branch else []),
        *([Git(clean=entry.clean)] if entry.clean is not None else []),
        *(Git(message=check) for check in _made(entry.message, TextChecks)),
        *(Git(staged=name) for name in entry.staged),
    ]


def _process(name: Literal["read_file", "ran_script"]) -> Makes:
    return Makes(Check, lambda files: [ProcessCheck(name=name, file=file) for file in files])


class Expected(TextChecks):
    """The checks of a case; every one must hold."""

    # A plugin may claim further keys; the reader rejects unclaimed ones.
    model_config = ConfigDict(
        extra="allow", json_schema_extra={"additionalProperties": False, "minProperties": 1}
    )

    compile: Annotated[
        CompileEntry,
        BeforeValidator(_text_as("language"), json_schema_input_type=str | CompileEntry),
        Makes(Compile, lambda entry: [entry.check()]),
        Field(default=None),
    ]
    """Language in which the answer's code must build, or an object with it and options."""
    run: Annotated[RunEntry, Makes(Run, lambda entry: [entry.check()]), Field(default=None)]
    """Test code that the answer's code must pass; both run in a sandbox."""
    judge: Annotated[values.Texts, one_each(Judge)] = Field(default_factory=list)
    """Statements that must be true of the answer; the model of `--upskill-judge` decides."""
    file_exists: Annotated[values.FileNames, one_each(FileExists)] = Field(default_factory=list)
    """Files that must be in an agent's workspace after the run; `*` and `?` are wildcards."""
    file_contains: Annotated[
        dict[values.WorkspaceName, values.Texts], Field(min_length=1), Makes(Check, _contained)
    ] = Field(default_factory=dict)
    """File of an agent's workspace to the strings that must all be in it."""
    file: Annotated[
        dict[values.WorkspaceName, Annotated[TextChecks, BeforeValidator(check_expected)]],
        Field(min_length=1),
        Makes(Check, _of_files),
    ] = Field(default_factory=dict)
    """File of an agent's workspace to the checks of its text."""
    command: Annotated[
        list[Annotated[CommandEntry, BeforeValidator(_text_as("run"))]],
        Field(min_length=1),
        BeforeValidator(
            _as_list,
            json_schema_input_type=values.Text | CommandEntry | list[values.Text | CommandEntry],
        ),
        Makes(RunsCommand, lambda entries: [entry.check() for entry in entries]),
    ] = Field(default_factory=list)
    """Commands in a copy of an agent's workspace: each must end with its exit status."""
    git: Annotated[GitEntry, BeforeValidator(check_expected), Makes(Git, _git), Field(default=None)]
    """The state of the git repository in an agent's workspace."""
    tool_called: Annotated[
        list[Annotated[CallCountEntry, BeforeValidator(_text_as("name"))]],
        BeforeValidator(
            _as_list,
            json_schema_input_type=values.Text
            | CallCountEntry
            | list[values.Text | CallCountEntry],
        ),
        Makes(ToolCalled, lambda entries: [entry.check for entry in entries]),
    ] = Field(default_factory=list)
    """Tools that an agent should call, by name, or with arguments or how often."""
    tool_order: Annotated[
        list[
            Annotated[
                CallEntry,
                BeforeValidator(_text_as("name"), json_schema_input_type=values.Text | CallEntry),
            ]
        ],
        Field(min_length=2),
        Makes(ToolOrder, lambda calls: [ToolOrder(calls=tuple(entry.call for entry in calls))]),
    ] = Field(default_factory=list)
    """Calls of an agent of which the first ones should be in this order."""
    triggered: Annotated[
        Literal[True],
        Makes(Check, lambda _true: [ProcessCheck(name="triggered")]),
        Field(default=None),
    ]
    """Whether the agent chose the skill; reported, never part of a pass rate."""
    read_file: Annotated[values.FileNames, _process("read_file")] = Field(default_factory=list)
    """Files of the skill that the agent should read; reported, never part of a pass rate."""
    ran_script: Annotated[values.FileNames, _process("ran_script")] = Field(default_factory=list)
    """Scripts of the skill that a command should name; reported, never part of a pass rate."""

    @model_validator(mode="after")
    def _check_deciding(self) -> Expected:
        if self.model_fields_set.issubset(_PROCESS) and not self.model_extra:
            raise ValueError(
                "decides nothing: only an agent with the skill can trigger it, read its files and "
                "run its scripts; add a check of the result, such as 'file_contains'"
            )
        return self

    def deciding(self, keys: Iterable[str]) -> Iterator[AnyCheck]:
        """Make the checks that decide, in the order of the keys in the file."""
        plugins = self.model_extra or {}
        for key in keys:
            if key in plugins:
                yield Custom(name=key, value=plugins[key])
            elif key not in _PROCESS:
                yield from _made(self, Expected, [key])

    def process(self) -> Iterator[ProcessCheck]:
        """Make the checks of what an agent does, which decide nothing."""
        return _made(self, Expected, _PROCESS)
