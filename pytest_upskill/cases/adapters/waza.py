"""Microsoft's waza: ``tasks/*.yaml``, with what the ``eval.yaml`` beside their folder adds.

Read: the schemas and graders of https://github.com/microsoft/waza at 091a1f9e (March 2026),
https://microsoft.github.io/waza/guides/graders of version 0.40 (November 2026), and the suites of
dskst/ddd-skills, mizchi/skills, akunzai/agent-skills and AzureCosmosDB/cosmosdb-agent-kit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from pytest_upskill.cases.adapters.adapter import (
    NOTHING,
    Adapter,
    Draft,
    Entry,
    Reads,
    Shape,
    keys,
)
from pytest_upskill.cases.adapters.choice import Choice, names_in
from pytest_upskill.cases.adapters.fields import Name, Prompt, Should, Skill, Tags
from pytest_upskill.cases.adapters.graders import (
    BUDGET,
    BY_NAME,
    NOT_CHECKED,
    RUBRIC,
    Grader,
    called,
    file_exists,
    files_gone,
    in_file,
    judged,
    literals,
    not_called,
    patterns,
    tools_named,
)
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.cases.source.yaml import parse_yaml
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.checks.text import NotRegex, Regex

_LENGTH = re.compile(r"\s*len\(output(?:\.strip\(\))?\) ([<>]) (\d+)\s*")
_NOT_EVALUATED = {
    "code": "its expressions are not evaluated",
    "program": "its program is not run",
    "json_schema": "its schema is in another file",
}


class _WazaGrader(Grader):
    measured = (
        "`text`, `keyword`, `file`, `behavior`, `tool_constraint`, `skill_invocation`, `prompt`, "
        "and `code` about lengths; left out: other `code`, `program`, budgets"
    )
    config: dict[str, Any] = Field(default_factory=dict)
    rubric: str = ""

    def read(self) -> Draft:
        match self.type:
            case "text" | "regex" | "keyword":
                return Draft(checks=tuple(self._of_text()))
            case "code" if lengths := self._lengths():
                return Draft(checks=lengths)
            case "prompt" | "llm":
                rubric = self.config.get("prompt") or self.config.get("rubric") or self.rubric
                return Draft(checks=judged(rubric, prefix=RUBRIC))
            case "trigger":  # of the words of the prompt, not of an agent's choice
                return NOTHING
        return self._of_agent()

    def _of_agent(self) -> Draft:
        match self.type:
            case "file":
                return Draft(checks=tuple(self._of_files()))
            case "skill_invocation":
                return Draft(
                    choice=Choice(expected=tuple(names_in(self.config.get("required_skills"))))
                )
            case "behavior":
                return Draft(checks=tuple(self._behavior()), left_out=self._budgets())
            case "tool_constraint":
                return self._constraint()
        raise ValueError(_NOT_EVALUATED.get(self.type, NOT_CHECKED))

    def _of_text(self) -> list[AnyCheck]:
        found: list[AnyCheck] = []
        for key, value in self.config.items():
            negate = "not_" in key
            if value and key.removeprefix("not_") in {"contains", "contains_cs", "keywords"}:
                found += literals(value, ignore_case=not key.endswith("_cs"), negate=negate)
            elif value and key in {"regex_match", "regex_not_match"}:
                found += patterns(value, negate=negate)
        return found

    def _lengths(self) -> tuple[AnyCheck, ...]:
        """Return the checks of assertions that are all about the length of the answer."""
        found = [_LENGTH.fullmatch(str(each)) for each in self.config.get("assertions", ())]
        sizes = [(each[1], int(each[2])) for each in found if each]
        if len(sizes) < len(found):
            return ()
        return tuple(
            Regex(pattern=rf"(?s)\A.{{{size + 1}}}")
            if sign == ">"
            else NotRegex(pattern=rf"(?s)\A.{{{size}}}")
            for sign, size in sizes
        )

    def _of_files(self) -> list[AnyCheck]:
        found: list[AnyCheck] = []
        if names := self.config.get("must_exist"):
            found += file_exists(names)
        if names := self.config.get("must_not_exist"):
            found += files_gone(names)
        for each in self.config.get("content_patterns") or ():
            for key, negate in (("must_match", False), ("must_not_match", True)):
                if each.get(key):
                    found += in_file(each.get("path"), patterns(each[key], negate=negate))
        return found

    def _behavior(self) -> Iterator[AnyCheck]:
        for name in self.config.get("required_tools") or ():
            yield called((str(name),))
        for name in self.config.get("forbidden_tools") or ():
            yield not_called((str(name),))

    def _budgets(self) -> tuple[str, ...]:
        budgets = ("max_tool_calls", "max_tokens", "max_duration_ms", "max_iterations", "max_turns")
        return tuple(f"{key}: {BUDGET}" for key in budgets if self.config.get(key))

    def _constraint(self) -> Draft:
        total = Draft(left_out=self._budgets())
        for key, make in (("expect_tools", called), ("reject_tools", not_called)):
            for each in self.config.get(key) or ():
                spec = each if isinstance(each, dict) else {"tool": str(each)}
                if {"skill_pattern", "path_pattern"} & spec.keys():
                    total += Draft(left_out=(f"{self.type}: {BY_NAME}",))
                    continue
                command = spec.get("command_pattern")
                names = tools_named(spec.get("tool", ""))
                total += Draft(checks=(make(names, f"(?i){command}" if command else ""),))
        return total


def Literals(*, negate: bool = False, any_of: bool = False) -> Reads:  # noqa: N802  like a type
    """Mark a field of texts to search for, ignoring case."""

    def read(value: object) -> Draft:
        if not value:
            return NOTHING
        return Draft(checks=literals(value, ignore_case=True, negate=negate, any_of=any_of))

    which = "none" if negate else "one" if any_of else "all"
    return Reads(read, f"texts, of which {which} must be in the answer")


def _files(value: object) -> Draft:
    inputs, names = [], []
    for file in value if isinstance(value, list) else ():
        if isinstance(file, dict) and "path" in file:
            name = str(file["path"])
            if isinstance(file.get("content"), str):
                inputs.append(WorkspaceFile(name=name, text=file["content"]))
            else:
                names.append((name, f"fixtures/{name}"))
    return Draft(inputs=tuple(inputs), files=tuple(names))


class _Inputs(Shape):
    prompt: Prompt = NOTHING
    files: Annotated[Draft, Reads(_files, "files of `fixtures`, or with their text")] = NOTHING


class _Expected(Shape):
    should_trigger: Should = NOTHING
    output_contains: Annotated[Draft, Literals()] = NOTHING
    output_not_contains: Annotated[Draft, Literals(negate=True)] = NOTHING
    output_contains_any: Annotated[Draft, Literals(any_of=True)] = NOTHING


class _Suite(Shape):
    skill: Skill = NOTHING
    graders: tuple[_WazaGrader, ...] = ()


class Task(Shape):
    """A task, with its suite."""

    id: Name = keys("id", "name")
    inputs: _Inputs
    expected: _Expected = _Expected()
    graders: tuple[_WazaGrader, ...] = ()
    suite: _Suite = _Suite()
    tags: Tags = NOTHING


def _find(value: Any) -> list[Entry]:
    is_task = isinstance(value, dict) and isinstance(value.get("inputs"), dict)
    return [Entry((), value)] if is_task and value.get("enabled", True) else []


def _beside(path: Path) -> Mapping[str, Any]:
    """Return the suite of a task: the ``eval.yaml`` beside its folder."""
    with suppress(BadFile, OSError):
        suite = parse_yaml(read_text(path.parent.parent / "eval.yaml")).value
        if isinstance(suite, dict):
            return {"suite": {key: suite[key] for key in ("skill", "graders") if key in suite}}
    return {}


ADAPTER = Adapter(
    tool="waza",
    about="https://github.com/microsoft/waza, version 0.40",
    places=("{tasks,holdouts}/**/*.{yaml,yml}",),
    find=_find,
    shape=Task,
    beside=_beside,
    example="""\
id: names-the-column
name: Names the column
inputs:
  prompt: Which column has missing values?
expected:
  should_trigger: true
  output_contains: [price]
graders:
  - type: text
    name: gives_a_count
    config: {regex_match: ['\\\\d+ rows']}
""",
)
