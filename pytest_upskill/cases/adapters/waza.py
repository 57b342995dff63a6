"""Microsoft's waza: ``tasks/*.yaml``, with what the ``eval.yaml`` beside their folder adds.

Read: the schemas and graders of https://github.com/microsoft/waza at 091a1f9e (March 2026),
https://microsoft.github.io/waza/guides/graders of version 0.40 (November 2026), and the suites of
dskst/ddd-skills, mizchi/skills, akunzai/agent-skills and AzureCosmosDB/cosmosdb-agent-kit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Reader
from pytest_upskill.cases.adapters.choice import Choice, names_in
from pytest_upskill.cases.adapters.draft import (
    Copied,
    Draft,
    Note,
    Weight,
    an_object,
    as_list,
    left_out,
)
from pytest_upskill.cases.source.formats import object_in
from pytest_upskill.checks.text import NotRegex, Regex

_LENGTH = re.compile(r"\s*len\(output(?:\.strip\(\))?\) ([<>]) (\d+)\s*")

_BUDGETS = ("max_tool_calls", "max_tokens", "max_duration_ms", "max_iterations", "max_turns")


def _of_text(grader: make.Given) -> make.Checks:
    for key, value in grader.items():
        negate = "not_" in key
        if value and key.removeprefix("not_") in {"contains", "contains_cs", "keywords"}:
            yield from make.literals(value, ignore_case=not key.endswith("_cs"), negate=negate)
        elif value and key in {"regex_match", "regex_not_match"}:
            yield from make.patterns(value, negate=negate)


def _lengths(grader: make.Given) -> make.Checks:
    """Yield the checks of assertions that are all about the length of the answer."""
    found = [_LENGTH.fullmatch(str(each)) for each in as_list(grader.get("assertions"))]
    if not found or not all(found):
        raise left_out("its expressions are not evaluated")
    for each in filter(None, found):
        size = int(each[2])
        if each[1] == ">":
            yield Regex(pattern=rf"(?s)\A.{{{size + 1}}}")
        else:
            yield NotRegex(pattern=rf"(?s)\A.{{{size}}}")


def _of_prompt(grader: make.Given) -> make.Checks:
    return make.judged(grader.get("prompt") or grader.get("rubric"), prefix=make.RUBRIC)


def _of_files(grader: make.Given) -> make.Checks:
    if names := grader.get("must_exist"):
        yield from make.file_exists(names)
    if names := grader.get("must_not_exist"):
        yield from make.files_gone(names)
    for each in map(an_object, as_list(grader.get("content_patterns"))):
        for key, negate in (("must_match", False), ("must_not_match", True)):
            if each.get(key):
                yield from make.in_file(each.get("path"), make.patterns(each[key], negate=negate))


def _skills(grader: make.Given) -> Draft:
    return Draft(choice=Choice(expected=tuple(names_in(grader.get("required_skills")))))


def _behavior(grader: make.Given) -> Draft:
    wanted = [make.called((str(name),)) for name in as_list(grader.get("required_tools"))]
    unwanted = [make.not_called((str(name),)) for name in as_list(grader.get("forbidden_tools"))]
    why = "a budget is not a check of the answer"
    notes = (Note(f"{e}: {why}", Weight.LEFT_OUT) for e in _BUDGETS if grader.get(e))
    return Draft(checks=(*wanted, *unwanted), notes=tuple(notes))


GRADERS = make.graders(
    "`text`, `keyword`, `file`, `behavior`, `skill_invocation`, `prompt`, and `code` about "
    "lengths; left out: other `code`, `program`, `tool_constraint`, budgets",
    {
        "text regex keyword": _of_text,
        "code": _lengths,
        "prompt llm llm_rubric": _of_prompt,
        "file": _of_files,
        "trigger": None,  # of the words of the prompt, not of an agent's choice
        "skill_invocation": _skills,
        "behavior": _behavior,
    },
)


def _files(value: object) -> Draft:
    found = keys.files_in(value)
    inside = (
        e._replace(source=f"fixtures/{e.name}") if isinstance(e, Copied) else e for e in found
    )
    return Draft(files=tuple(inside))


def _find(value: Any) -> list[Entry]:
    is_task = isinstance(value, dict) and isinstance(value.get("inputs"), dict)
    return [Entry((), value)] if is_task and value.get("enabled", True) else []


def _beside(path: Path) -> Mapping[str, Any]:
    """Return the suite of a task: the ``eval.yaml`` beside its folder."""
    return {"suite": object_in(path.parent.parent / "eval.yaml")}


ADAPTER = Adapter(
    tool="waza",
    about="https://github.com/microsoft/waza, version 0.40",
    places=("{tasks,holdouts}/**/*.{yaml,yml}",),
    find=_find,
    keys={
        "id|name": keys.NAME,
        "inputs": {
            "prompt": keys.PROMPT,
            "files": Reader("files of `fixtures`, or with their text", _files),
        },
        "expected": {
            "should_trigger": keys.SHOULD,
            "output_contains": Reader("texts that must be in the answer", make.literals),
            "output_not_contains": Reader(
                "texts that must not", partial(make.literals, negate=True)
            ),
            "output_contains_any": Reader(
                "texts of which one must", partial(make.literals, any_of=True)
            ),
        },
        "graders": GRADERS,
        "suite": {"skill": keys.SKILL, "graders": GRADERS},
        "tags": keys.TAGS,
    },
    beside=_beside,
)
