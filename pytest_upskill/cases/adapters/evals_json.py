"""``evals.json`` of agentskills.io and skill-creator, and what other tools made of it.

Read: https://agentskills.io/skill-creation/evaluating-skills and skill-creator of
anthropics/skills, both of July 2026; NVIDIA/skills, benchflow and agent-skills-eval of August 2026.
The keys of the others were collected from files in public repositories, which mix them freely.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_upskill.cases.adapters import keys, trigger_lists
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Reader, Shape, listed
from pytest_upskill.cases.adapters.assertions import ASSERTIONS, searched, stated, worded
from pytest_upskill.cases.adapters.choice import FITS, choice_of, normalize
from pytest_upskill.cases.adapters.draft import NOTHING, Draft, Flaw, Weight
from pytest_upskill.cases.source.document import shown

_LISTS = ("evals", "cases", "tests", "evaluations", "output_evals", "scenarios", "test_cases")
"""Keys of lists of cases; any other list counts if each entry has a question."""

_CASES = frozenset({*_LISTS, *trigger_lists.LISTS})


def _context(value: object) -> Draft:
    """Read what stands before the question: text, or an object with files."""
    if isinstance(value, str):
        return Draft(context=value.strip())
    given = value if isinstance(value, dict) else {shown(value): value}
    if unknown := next((key for key, part in given.items() if part and key != "files"), None):
        raise Flaw(f"{unknown} is not sent: write it as text, or as 'files'", Weight.LACKS)
    return keys.read_files(given.get("files"))


def _trajectory(value: object) -> Draft:
    chosen = value.get("skill_triggered") if isinstance(value, dict) else None
    return Draft(choice=choice_of(chosen)) if isinstance(chosen, bool) else NOTHING


def _answer(value: object) -> Draft:
    """Read assertions, or a text: the answer in words, or a word such as ``no-use``."""
    if not isinstance(value, str):
        return ASSERTIONS.read(value)
    if _CHOSEN.fullmatch(normalize(value)):
        return Draft(choice=choice_of(value))
    return Draft(reference=tuple(stated([value], FITS)))


_ANSWER = Reader(
    "assertions; or the answer in words, which counts if there are no assertions", _answer
)
_CHOSEN = re.compile(
    r"([a-z]+_){0,3}(trigger|activat|invok)(e|ed|s|ion)?(_skill)?|(no_|not_)?used?"
)
"""Words about the choice of a skill that can hardly be an answer."""

_ABOUT_CHOICE = r"false_positive.*|near_.*|distractor|decoy|anti_.*|.*(trigger|activat|invok).*"
"""Words for kinds of cases; others, such as ``negative``, may be about the answer."""

_SHAPE = Shape(
    {
        **trigger_lists.QUERY,
        "expected expect": _ANSWER,
        "type kind category": trigger_lists.kind("`false_positive` …", only=_ABOUT_CHOICE),
        "label polarity": trigger_lists.kind("the choice, where no other key says it"),
        "assertions assert expectations expected_behavior expected_behaviors checks acceptance"
        " acceptance_criteria rubric criteria must must_have": ASSERTIONS,
        "expected_output": _ANSWER,
        "must_include": worded("The answer includes this: "),
        "must_not_include": worded("The answer does not include this: ", negate=True),
        "expected_output_characteristics": worded("The answer has this: "),
        "must_do": worded("The answer does this: "),
        "must_avoid": worded("The answer avoids this: ", negate=True),
        "must_not must_not_have must_not_do failure_conditions anti_expectations fail": worded(
            "The answer does not do this: ", negate=True
        ),
        "must_contain expected_output_contains": searched("contains"),
        "must_not_contain": searched("not_contains"),
        "required_regex": searched("regex"),
        "forbidden_regex": searched("not_regex"),
        "ground_truth": worded("The answer agrees with this reference: "),
        "context": Reader("text before the question, or files", _context),
        "files": keys.FILES,
        "workspace|fixture|fixtures": keys.WORKSPACE,
        "setup": keys.SETUP,
        "max_turns": keys.MAX_TURNS,
        "expected_files|expected_artifacts|required_artifacts|output_files": keys.LEFT_FILES,
        "expected_script": keys.RAN_SCRIPT,
        "expected_references": keys.OPENED_FILES,
        "expected_test": keys.needs_agent("runs no scripts"),
        "graders|validators|deterministic_assertions": keys.needs_agent(
            "leaves nothing for commands to look at"
        ),
        "expected_tools|expected_tool|expect_tools": keys.CALLED_TOOLS,
        "reject_tools": keys.REJECTED_TOOLS,
        "tool_assertions": keys.needs_agent("calls no tools"),
        "tools": keys.lacks("tools"),
        "cmd": keys.lacks("commands"),
        "turns|messages|conversation|query_flow|prompt_sequence|steps|history": keys.lacks(
            "further turns"
        ),
        "environment": keys.lacks("workspace"),
        "trajectory": Reader("`skill_triggered`", _trajectory),
    }
)


def _find(value: Any) -> list[Entry]:
    """Return the cases of every part of a document, or the document if it is a case."""
    if isinstance(value, list):
        return [Entry(path, _flat(case)) for path, case in listed(value)]
    entries: list[Entry] = []
    for key, part in value.items() if isinstance(value, dict) else ():
        if found := trigger_lists.sets_in(key, part):
            entries += found
        elif isinstance(part, list) and (key in _CASES or (part and all(map(_asks, part)))):
            entries += [Entry(path, _flat(case)) for path, case in listed(value, key)]
    return entries or ([Entry((), _flat(value))] if _asks(value) else [])


def _asks(value: object) -> bool:
    return isinstance(value, dict) and any(key in value for key in trigger_lists.PROMPTS[:-1])


def _flat(case: Any) -> Any:
    """Return a case whose prompt is an object with the keys of that object as its own."""
    given: Mapping[str, Any] = case if isinstance(case, dict) else {}
    key = next((key for key in trigger_lists.PROMPTS if key in given), None)
    if key is None or not isinstance(given[key], dict):
        return case
    return {**given[key], **{other: given[other] for other in given if other != key}}


ADAPTER = Adapter(
    tool="agentskills.io, skill-creator",
    about="https://agentskills.io/skill-creation/evaluating-skills, July 2026",
    places=(
        "{evals,evals-full}.{json,jsonl,yaml,yml}",
        "{cases,test-prompts,test_prompts,*{test,behavior,output}{-,_}cases}*.{json,jsonl,yaml,yml}",
        "{*-,*_,*.,}eval{s,}{,-,_}{all,cases,full,queries,set,#,##,}.{json,jsonl,yaml,yml}",
        "*{routing,activation}*.{json,jsonl,yaml,yml}",
        "{evaluations,evals/cases}/*.{json,jsonl,yaml,yml}",
    ),
    find=_find,
    shape=_SHAPE,
    skill=trigger_lists.skill_at_top,
)
