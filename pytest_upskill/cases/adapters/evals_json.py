"""``evals.json`` of agentskills.io and skill-creator, and what other tools made of it.

Read: https://agentskills.io/skill-creation/evaluating-skills and skill-creator of
anthropics/skills, both of July 2026; NVIDIA/skills, benchflow and agent-skills-eval of August 2026.
The keys of the others were collected from files in public repositories, which mix them freely.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import model_validator

from pytest_upskill.cases.adapters import trigger_lists
from pytest_upskill.cases.adapters.adapter import NOTHING, Adapter, Draft, Entry, Reads, keys
from pytest_upskill.cases.adapters.assertions import as_list, part_of, statements
from pytest_upskill.cases.adapters.choice import FITS, choice_of, normalize
from pytest_upskill.cases.adapters.fields import (
    Assertions,
    CalledTools,
    Files,
    Lacks,
    LeftFiles,
    MaxTurns,
    NeedsAgent,
    NotStated,
    OpenedFiles,
    RanScript,
    RejectedTools,
    Searched,
    Setup,
    Stated,
    Workspace,
    read_files,
)
from pytest_upskill.cases.source.document import shown

_LISTS = ("evals", "cases", "tests", "evaluations", "output_evals", "scenarios", "test_cases")
"""Keys of lists of cases; any other list counts if each entry has a question."""

_CASES = frozenset({*_LISTS, *trigger_lists.LISTS})


def _context(value: object) -> Draft:
    """Read what stands before the question: text, or an object with files."""
    if isinstance(value, str):
        return Draft(context=value.strip())
    if isinstance(value, dict):
        unknown = next((key for key, part in value.items() if part and key != "files"), None)
        if unknown is None:
            return read_files(value.get("files"))
        return Draft(lacks=(f"{unknown} is not sent: write it as text, or as 'files'",))
    if value:
        return Draft(lacks=(f"{shown(value)} is not sent: write it as text, or as 'files'",))
    return NOTHING


def _trajectory(value: object) -> Draft:
    chosen = value.get("skill_triggered") if isinstance(value, dict) else None
    return Draft(choice=choice_of(chosen)) if isinstance(chosen, bool) else NOTHING


_Kind = Annotated[
    Draft,
    Reads(
        lambda value: trigger_lists.kind(value, only=_ABOUT_CHOICE),
        "`false_positive`, `near-miss` …",
    ),
]
_ABOUT_CHOICE = re.compile(
    r"false_positive.*|near_.*|distractor|decoy|anti_.*|.*(trigger|activat|invok).*"
)
"""Words for kinds of cases; others, such as ``negative``, may be about the answer."""

_NOT_DONE = NotStated("The answer does not do this: ")


def _answer(value: object) -> Draft:
    """Read assertions, or a text: the answer in words, or a word such as ``no-use``."""
    if isinstance(value, str):
        if _CHOSEN.fullmatch(normalize(value)):
            return Draft(choice=choice_of(value))
        text = statements(value, prefix=FITS)
        return Draft(reference=text.checks)
    return sum(map(part_of, as_list(value)), NOTHING)


_CHOSEN = re.compile(
    r"([a-z]+_){0,3}(trigger|activat|invok)(e|ed|s|ion)?(_skill)?|(no_|not_)?used?"
)
"""Words about the choice of a skill that can hardly be an answer."""

ExpectedAnswer = Annotated[Draft, Reads(_answer, "assertions; or the answer in words, which counts "
                                        "if there are no assertions")]  # fmt: skip


class EvalCase(trigger_lists.Query):
    """A question with what an answer must be, or with which skill should be chosen."""

    type: _Kind = NOTHING
    kind: _Kind = NOTHING
    category: _Kind = NOTHING
    assertions: Assertions = ()
    assert_: Assertions = ()
    expectations: Assertions = ()
    expected_behavior: Assertions = ()
    expected_behaviors: Assertions = ()
    checks: Assertions = ()
    acceptance: Assertions = ()
    acceptance_criteria: Assertions = ()
    rubric: Assertions = ()
    criteria: Assertions = ()
    must: Assertions = ()
    must_have: Assertions = ()
    expected_output: ExpectedAnswer = NOTHING
    expected: ExpectedAnswer = NOTHING
    expect: ExpectedAnswer = NOTHING
    must_include: Annotated[Draft, Stated("The answer includes this: ")] = NOTHING
    must_not_include: Annotated[Draft, NotStated("The answer does not include this: ")] = NOTHING
    expected_output_characteristics: Annotated[Draft, Stated("The answer has this: ")] = NOTHING
    must_do: Annotated[Draft, Stated("The answer does this: ")] = NOTHING
    must_avoid: Annotated[Draft, NotStated("The answer avoids this: ")] = NOTHING
    must_not: Annotated[Draft, _NOT_DONE] = NOTHING
    must_not_have: Annotated[Draft, _NOT_DONE] = NOTHING
    must_not_do: Annotated[Draft, _NOT_DONE] = NOTHING
    failure_conditions: Annotated[Draft, _NOT_DONE] = NOTHING
    anti_expectations: Annotated[Draft, _NOT_DONE] = NOTHING
    fail: Annotated[Draft, _NOT_DONE] = NOTHING
    must_contain: Annotated[tuple[Draft, ...], Searched("contains")] = ()
    expected_output_contains: Annotated[tuple[Draft, ...], Searched("contains")] = ()
    must_not_contain: Annotated[tuple[Draft, ...], Searched("not_contains")] = ()
    required_regex: Annotated[tuple[Draft, ...], Searched("regex")] = ()
    forbidden_regex: Annotated[tuple[Draft, ...], Searched("not_regex")] = ()
    ground_truth: Annotated[Draft, Stated("The answer agrees with this reference: ")] = NOTHING
    context: Annotated[Draft, Reads(_context, "text before the question, or files")] = NOTHING
    files: Files = NOTHING
    workspace: Workspace = keys("workspace", "fixture", "fixtures")
    setup: Setup = NOTHING
    max_turns: MaxTurns = NOTHING
    expected_files: LeftFiles = keys("expected_files", "expected_artifacts", "required_artifacts",
                                     "output_files")  # fmt: skip
    expected_script: RanScript = NOTHING
    expected_references: OpenedFiles = NOTHING
    expected_test: Annotated[Draft, NeedsAgent("runs no scripts")] = NOTHING
    graders: Annotated[Draft, NeedsAgent("leaves nothing for commands to look at")] = keys(
        "graders", "validators", "deterministic_assertions"
    )
    expected_tools: CalledTools = keys("expected_tools", "expected_tool", "expect_tools")
    reject_tools: RejectedTools = NOTHING
    tool_assertions: Annotated[Draft, NeedsAgent("calls no tools")] = NOTHING
    tools: Annotated[Draft, Lacks("tools")] = NOTHING
    cmd: Annotated[Draft, Lacks("commands")] = NOTHING
    turns: Annotated[Draft, Lacks("further turns")] = keys(
        "turns", "messages", "conversation", "query_flow", "prompt_sequence", "steps", "history"
    )
    environment: Annotated[Draft, Lacks("workspace")] = NOTHING
    trajectory: Annotated[Draft, Reads(_trajectory, "`skill_triggered`")] = NOTHING

    @model_validator(mode="before")
    @classmethod
    def _merge_prompt(cls, value: Any) -> Any:
        """Merge the keys of a prompt that is an object into its case."""
        key = next((key for key in trigger_lists.PROMPTS if key in value), None)
        if key is None or not isinstance(value[key], dict):
            return value
        return {**value[key], **{other: value[other] for other in value if other != key}}


def find(value: Any) -> list[Entry]:
    """Return the cases of every part of a document, or the document if it is a case."""
    if isinstance(value, list):
        return [Entry((index,), case) for index, case in enumerate(value)]
    if not isinstance(value, dict):
        return []
    entries = []
    for key, part in value.items():
        if found := trigger_lists.sets_in(key, part):
            entries += found
        elif isinstance(part, list) and (key in _CASES or _all_ask(part)):
            entries += [Entry((key, index), case) for index, case in enumerate(part)]
    return entries or ([Entry((), value)] if _asks(value) else [])


def _all_ask(value: list[Any]) -> bool:
    return bool(value) and all(map(_asks, value))


def _asks(value: object) -> bool:
    return isinstance(value, dict) and any(key in value for key in trigger_lists.PROMPTS[:-1])


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
    find=find,
    shape=EvalCase,
    skill=trigger_lists.skill_at_top,
    example="""\
{
  "skill_name": "csv",
  "evals": [
    {
      "id": 1,
      "prompt": "Which columns are empty?",
      "files": ["evals/files/x.csv"],
      "assertions": ["Names the column price."]
    }
  ]
}
""",
)
