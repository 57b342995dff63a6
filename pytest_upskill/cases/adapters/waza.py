"""Microsoft's waza: ``tasks/*.yaml``, with what the ``eval.yaml`` beside their folder adds.

Read: the schemas and graders of https://github.com/microsoft/waza at 091a1f9e (March 2026),
https://microsoft.github.io/waza/guides/graders of version 0.40 (November 2026), and the suites of
dskst/ddd-skills, mizchi/skills, akunzai/agent-skills and AzureCosmosDB/cosmosdb-agent-kit.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Reader
from pytest_upskill.cases.adapters.draft import Draft, Flaw, Weight, an_object, as_list, left_out
from pytest_upskill.cases.source.formats import object_in
from pytest_upskill.checks.text import NotRegex, Regex

_LENGTH = re.compile(r"\s*len\(output(?:\.strip\(\))?\) ([<>]) (\d+)\s*")


def _lengths(grader: make.Given) -> make.Checks:
    """Yield the checks of assertions that are all about the length of the answer."""
    found = [_LENGTH.fullmatch(str(each)) for each in as_list(grader.get("assertions"))]
    if not found or not all(found):
        raise left_out("its expressions are not evaluated")
    for each in filter(None, found):
        size = int(each[2])
        if each[1] == ">" and not size:
            raise Flaw("any answer is longer than nothing", Weight.LIMIT)
        if each[1] == ">":
            yield Regex(pattern=rf"(?s)\A.{{{size + 1}}}")
        else:
            yield NotRegex(pattern=rf"(?s)\A.{{{size}}}")


def _content(value: object) -> make.Checks:
    given = an_object(value)
    for key, negate in (("must_match", False), ("must_not_match", True)):
        if given.get(key):
            yield from make.in_file(given.get("path"), make.patterns(given[key], negate=negate))


GRADERS = keys.graders(
    "`text`, `keyword`, `file`, `behavior`, `skill_invocation`, `prompt`, and `code` about "
    "lengths; left out: other `code`, `program`, `tool_constraint`, budgets",
    {
        "text regex keyword": {
            "contains keywords": Reader("", make.literals),
            "contains_cs": Reader("", partial(make.literals, ignore_case=False)),
            "not_contains": Reader("", partial(make.literals, negate=True)),
            "not_contains_cs": Reader("", partial(make.literals, ignore_case=False, negate=True)),
            "regex_match must_match pattern": Reader("", make.patterns),
            "regex_not_match must_not_match": Reader("", partial(make.patterns, negate=True)),
        },
        "code": _lengths,
        "prompt llm llm_rubric": {"prompt|rubric": make.statements("", make.RUBRIC)},
        "file": {
            "must_exist": keys.LEFT_FILES,
            "must_not_exist": Reader("", make.files_gone),
            "content_patterns": Reader("", _content, as_list),
        },
        "trigger": None,  # of the words of the prompt, not of an agent's choice
        "skill_invocation": {"required_skills": keys.ALSO_EXPECTED},
        "behavior": {
            "required_tools": keys.CALLED_TOOLS,
            "forbidden_tools": keys.REJECTED_TOOLS,
            "max_tool_calls max_tokens max_duration_ms max_iterations max_turns": keys.unmeasured(
                "a budget is not a check of the answer", Weight.LIMIT
            ),
        },
    },
)


def _find(value: Any) -> list[Entry]:
    is_task = isinstance(value, dict) and isinstance(value.get("inputs"), dict)
    return [Entry((), value)] if is_task and value.get("enabled", True) else []


def _beside(path: Path, task: Any) -> Mapping[str, Any]:
    """Return the suite of a task: the ``eval.yaml`` beside its folder.

    waza keeps one result for each name, so a grader of the task replaces the suite's of its name.
    """
    suite = object_in(path.parent.parent / "eval.yaml")
    graders = as_list(task.get("graders")) if isinstance(task, dict) else []
    own = {_name_of(grader) for grader in graders} - {""}
    left = [each for each in as_list(suite.get("graders")) if _name_of(each) not in own]
    return {"suite": {**suite, "graders": left}}


def _name_of(grader: object) -> str:
    return str(grader.get("name") or "") if isinstance(grader, dict) else ""


ADAPTER = Adapter(
    tool="waza",
    about="https://github.com/microsoft/waza, version 0.40",
    places=("{tasks,holdouts}/**/*.{yaml,yml}",),
    find=_find,
    keys={
        "id|name": keys.NAME,
        "inputs": {
            "prompt": keys.PROMPT,
            "follow_up_prompts": keys.FURTHER_TURNS,
            "files": Reader(
                "files of `fixtures`, or with their text",
                lambda value: Draft(files=keys.files_in(value, folder="fixtures/")),
            ),
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
