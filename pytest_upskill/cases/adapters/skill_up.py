"""Alibaba's skill-up: ``evals/cases/*.yaml``, with the defaults of ``evals/eval.yaml``.

Read: ``docs/guide/writing-evals.md`` of https://github.com/alibaba/skill-up at 0bc8f6d (November
2026), and its examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pytest_upskill.cases.adapters.adapter import NOTHING, Adapter, Draft, Entry, Reads, Shape
from pytest_upskill.cases.adapters.fields import MaxTurns, Name, NeedsAgent, Prompt, read_workspace
from pytest_upskill.cases.adapters.graders import (
    NOT_CHECKED,
    file_exists,
    files_gone,
    in_file,
    judged,
    literals,
    patterns,
)
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.cases.source.yaml import parse_yaml
from pytest_upskill.checks import AnyCheck


class _Input(Shape):
    prompt: Prompt = NOTHING
    turns: Annotated[Draft, NeedsAgent("has no further turns")] = NOTHING


class _Expect(Shape):
    measured: ClassVar[str] = "texts and files that must be there, or must not"
    must_contain: list[str] = Field(default_factory=list)
    must_not_contain: list[str] = Field(default_factory=list)
    files_exist: list[str] = Field(default_factory=list)
    files_not_exist: list[str] = Field(default_factory=list)
    file_contains: list[dict[str, Any]] = Field(default_factory=list)
    golden_file: str = ""

    def draft(self) -> Draft:
        checks: list[AnyCheck] = []
        if self.must_contain:
            checks += literals(self.must_contain, ignore_case=False)
        if self.must_not_contain:
            checks += literals(self.must_not_contain, ignore_case=False, negate=True)
        if self.files_exist:
            checks += file_exists(self.files_exist)
        for each in self.file_contains:
            found = literals(each.get("content"), ignore_case=False)
            checks += in_file(each.get("path"), found)
        if self.files_not_exist:
            checks += files_gone(self.files_not_exist)
        why = "the answer is not compared with a file"
        left_out = (f"golden_file: {why}",) if self.golden_file else ()
        return Draft(checks=tuple(checks), left_out=left_out)


def _rules(rules: object, *, negate: bool = False) -> Draft:
    """Read the rules of a judge by code; of those for failure, none may hold."""
    total = NOTHING
    for rule in rules if isinstance(rules, list) else ():
        for kind, value in rule.items() if isinstance(rule, dict) else ():
            total += _rule(kind, value, negate=negate)
    return total


def _rule(kind: str, value: Any, *, negate: bool) -> Draft:
    if kind == "exit_code":
        return NOTHING
    if kind not in {"output_contains", "output_matches"} or not isinstance(value, dict):
        return Draft(left_out=(f"{kind}: {NOT_CHECKED}",))
    make = patterns if kind == "output_matches" else partial(literals, ignore_case=False)
    checks: list[AnyCheck] = []
    for which, texts in value.items():
        if negate and (which == "not" or (which == "all" and len(texts) > 1)):
            return Draft(left_out=(f"{kind}: one text is enough, which no check here can say",))
        checks += make(texts, negate=negate or which == "not", any_of=which == "any")
    return Draft(checks=tuple(checks))


def _judge(value: object) -> Draft:
    given = _object(value)
    if given.get("type") == "script":
        return Draft(left_out=("script: its script is not run",))
    rules = _rules(given.get("success")) + _rules(given.get("failure"), negate=True)
    criteria = given.get("criteria")
    return rules + (Draft(checks=judged(criteria)) if criteria else NOTHING)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _context(value: object) -> Draft:
    given = _object(value)
    git = _object(given.get("git"))
    folder, diff = given.get("repo_fixture"), git.get("apply_diff")
    copies = [("", str(folder))] if folder else []
    commands = [f"git checkout -q -B {quote(str(git['checkout']))}"] if git.get("checkout") else []
    if diff:
        copies.append((".applied.patch", str(diff)))
        commands.append("git apply .applied.patch && rm .applied.patch")
    inline = read_workspace(given.get("files"))
    return inline + Draft(copies=tuple(copies), commands=tuple(commands), git=bool(git))


class _Constraints(Shape):
    max_turns: MaxTurns = NOTHING


class UpCase(Shape):
    """A case, with the checks that all cases of its suite have."""

    id: Name = NOTHING
    input: _Input
    expect: _Expect = _Expect()
    defaults: _Expect = _Expect()
    judge: Annotated[Draft, Reads(_judge, "rules, or criteria for a judge")] = NOTHING
    context: Annotated[Draft, Reads(_context, "files, a folder and git for an agent")] = NOTHING
    constraints: _Constraints = _Constraints()


def _find(value: Any) -> list[Entry]:
    is_case = isinstance(value, dict) and isinstance(value.get("input"), dict)
    return [Entry((), value)] if is_case else []


def _beside(path: Path) -> Mapping[str, Any]:
    """Return the id of a case, which is the name of its file, and the defaults of its suite."""
    given: dict[str, Any] = {"id": path.stem}
    with suppress(BadFile, OSError, KeyError, TypeError):
        suite = parse_yaml(read_text(path.parent.parent / "eval.yaml")).value
        given["defaults"] = suite["cases"]["defaults"]["expect"]
    return given


ADAPTER = Adapter(
    tool="skill-up",
    about="https://alibaba.github.io/skill-up/guide/writing-evals, November 2026",
    places=("evals/cases/**/*.{yaml,yml}",),
    find=_find,
    shape=UpCase,
    beside=_beside,
    example="""\
input:
  prompt: Which column has missing values?
expect:
  must_contain: [price]
judge:
  type: agent_judge
  criteria: [Says how many are missing]
""",
)
