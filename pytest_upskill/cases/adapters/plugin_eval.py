"""``claude plugin eval``: a folder for each case, with ``prompt.md`` or ``case.yaml`` and graders.

Read: Claude Code 2.1.330 (its help, its loader and its schema of graders, November 2026) and
https://code.claude.com/docs/en/plugin-evals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from pytest_upskill.cases.adapters.adapter import NOTHING, Adapter, Draft, Entry, Reads, Shape
from pytest_upskill.cases.adapters.choice import Choice
from pytest_upskill.cases.adapters.fields import MaxTurns, Name, Prompt, Tags
from pytest_upskill.cases.adapters.graders import (
    RUBRIC,
    Grader,
    call_of,
    called,
    file_exists,
    files_gone,
    in_file,
    judged,
    patterns,
)
from pytest_upskill.cases.adapters.patterns import python_pattern
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.cases.source.text import parse_markdown
from pytest_upskill.cases.source.yaml import parse_yaml
from pytest_upskill.checks.calls import CallOf, ToolOrder

_ABSENT = frozenset({"not_contains", "count:0"})
_TYPES = "regex, llm, file_exists, tool_used or tool_order"


class _PluginGrader(Grader):
    measured = (
        "`regex`, `llm`, `file_exists`, `tool_used`, `tool_order`; calls of `Skill` are triggers; "
        "left out: graders of one arm, of the trace, `baseline`, `count:N`"
    )
    name: str = ""
    arm: str = ""
    pattern: Any = None
    flags: str = ""
    match: str = "contains"
    target: Any = "last_message"
    criteria: Any = None
    focus: Any = "last_message"
    tool: str = ""
    input_match: str = ""
    min: int | None = None
    max: int | None = None
    before: Any = None
    after: Any = None
    path: Any = None
    exists: bool = True

    def read(self) -> Draft:
        if self.type == "tool_used" and self.tool == "Skill":
            return self._skill_used()
        if self.arm == "with-only":
            raise ValueError("an indicator of the arm with the plugin, outside the score")
        match self.type:
            case "regex":
                return self._found()
            case "llm" if self.focus == "last_message":
                return Draft(checks=judged(self.criteria, prefix=RUBRIC))
            case "llm":
                raise ValueError("its judge looks at more than the answer")
            case "file_exists":
                return Draft(checks=(file_exists if self.exists else files_gone)(self.path))
            case "tool_used":
                least = int(self.max != 0) if self.min is None else self.min
                used = called((self.tool,), self.input_match, least=least, most=self.max)
                return Draft(checks=(used,))
            case "tool_order":
                return Draft(checks=(ToolOrder(calls=(_call(self.before), _call(self.after))),))
            case "baseline":
                raise ValueError("the answer is not compared with another")
        raise ValueError(f"no such type of grader: write {_TYPES}")

    def _found(self) -> Draft:
        if self.match not in {"contains", *_ABSENT}:
            raise ValueError(f"{self.match!r} is not counted")
        found = patterns(self.pattern, flags=self.flags, negate=self.match in _ABSENT)
        if isinstance(self.target, dict):
            return Draft(checks=in_file(self.target.get("path"), found))
        if self.target != "last_message":
            raise ValueError(f"its target is {self.target!r}, not the answer or a file")
        return Draft(checks=found)

    def _skill_used(self) -> Draft:
        names = _skills_called(self.input_match)
        if self.max != 0:
            return Draft(choice=Choice(expected=names) if names else _SHOULD)
        return Draft(skills=names[:1], choice=Choice(forbidden=names) if names else _SHOULD_NOT)


def _call(value: Any) -> CallOf:
    given = value if isinstance(value, dict) else {"tool": value}
    return call_of((str(given.get("tool")),), str(given.get("input_match") or ""))


_SHOULD, _SHOULD_NOT = (Choice(should=frozenset({each})) for each in (True, False))


def _skills_called(pattern: str) -> tuple[str, ...]:
    """Return the names of the skills in a pattern of a call's input that it matches."""
    if not pattern:
        return ()
    words = list(dict.fromkeys(re.findall(r"[A-Za-z0-9][\w-]*", pattern)))
    search = re.compile(python_pattern(pattern)).search
    plugins = ("", *(f"{word}:" for word in words))
    return tuple(
        word for word in words if any(search(f'{{"skill":"{plugin}{word}"}}') for plugin in plugins)
    )


class _Execution(Shape):
    prompt: Prompt = NOTHING
    max_turns: MaxTurns = NOTHING


def _context(value: object) -> Draft:
    given = value if isinstance(value, dict) else {}
    skips = ["a single answer continues no session"] if given.get("history_file") else []
    script = str(given.get("scaffold_script") or "")
    return Draft(
        files=tuple(map(str, given.get("add_dirs") or ())),
        copies=((script, script),) if script else (),
        commands=(f"bash {quote(script)} && rm {quote(script)}",) if script else (),
        skips=tuple(skips),
    )


class PluginCase(Shape):
    """A case: the frontmatter and the text of its prompt, its ``case.yaml`` and its graders."""

    name: Name = NOTHING
    body: Prompt = NOTHING
    execution: _Execution = _Execution()
    max_turns: MaxTurns = NOTHING
    context: Annotated[Draft, Reads(_context, "folders of input files")] = NOTHING
    graders: tuple[_PluginGrader, ...] = ()
    tags: Tags = NOTHING


_BODIES = {"llm": "criteria", "baseline": "criteria", "regex": "pattern"}
"""Keys that the text of a grader's file stands for, by the type of the grader."""


def _beside(path: Path) -> Mapping[str, Any]:
    """Return what else the folder of a case has: its name, its ``case.yaml`` and its graders."""
    given: dict[str, Any] = {"name": path.parent.name}
    with suppress(BadFile, OSError):
        case = parse_yaml(read_text(path.with_name("case.yaml"))).value
        given |= case if isinstance(case, dict) else {}
    graders = [*given.get("graders", ())]
    for file in sorted(path.parent.glob("graders/*.md")):
        with suppress(BadFile, OSError):
            value = parse_markdown(read_text(file)).value
            body, kind = value.pop("body"), value.get("type")
            stands_for = {_BODIES[kind]: body} if body and kind in _BODIES else {}
            if kind:
                graders.append({"name": file.stem, **stands_for, **value})
    return {**given, "graders": graders}


def _find(value: Any) -> list[Entry]:
    is_case = isinstance(value, dict) and ("body" in value or "schema_version" in value)
    return [Entry((), value)] if is_case else []


ADAPTER = Adapter(
    tool="claude plugin eval",
    about="https://code.claude.com/docs/en/plugin-evals, Claude Code 2.1.330",
    places=("{*evals,*eval}/**/prompt*.md", "{*evals,*eval}/**/case*.yaml"),
    find=_find,
    shape=PluginCase,
    is_folder=True,
    beside=_beside,
    example="""\
---
tags: [columns]
max_turns: 10
---
Which column has missing values?
""",
)
