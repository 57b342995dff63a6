"""``evals.json`` of agentskills.io and skill-creator, what others made of it, and trigger lists.

A trigger list has queries, each with whether an agent should choose a skill for it, or which one.

Read: https://agentskills.io/skill-creation/evaluating-skills and skill-creator of
anthropics/skills, yao-meta-skill (``scripts/trigger_eval.py``), all of July 2026; NVIDIA/skills,
benchflow and agent-skills-eval of August 2026; for tables of prompts in CSV,
https://developers.openai.com/blog/eval-skills of January 2026.
The keys of the others were collected from files in public repositories, which mix them freely;
`choice.py` has the words for yes and no.
"""

import re
from collections.abc import Mapping
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Keys, Reader, entries_at
from pytest_upskill.cases.adapters.assertions import ASSERTIONS, searched, stated, worded
from pytest_upskill.cases.adapters.choice import FITS, NO_SKILL, meaning_of, normalize, own_skill
from pytest_upskill.cases.adapters.draft import IS_OURS, NOTHING, Draft, Flaw, Weight, as_list
from pytest_upskill.cases.adapters.other_tools import GRADERS

_QUESTION = "prompt|input|question|query|task|instruction|user_request|text"
PROMPTS = tuple(_QUESTION.split("|"))
"""Keys of a question."""

_SKILL = "skill|skill_name|skill_under_test|target_skill|target_skills|skills"

_SET = re.compile(
    r"(global_)?(should(?:_not)?_(?:trigger|activate|fire|load|use)|positive|negative"
    r"|near_(?:neighbou?r|miss)|(?:false|true|hard)_(?:positive|negative)|(?:in|out_of)_scope|anti)"
    r"(?:e?s|_(?:prompts|queries|cases|examples|triggers|tests))?"
)
"""Keys of lists of queries that share a choice; a global one is about all skills."""

_PART = re.compile(
    r"(?:(?:activat\w*|cases|evals?|evaluations?|negative|positive|prompts|quer(?:y|ies)|routing"
    r"|set|skill|tests?|triggers?|triggering)(?:[-_ ]|$))+",
    re.IGNORECASE,
)
"""Words of a key that names a part of the file, not a skill."""

_LISTS = re.compile(
    r"evals|(?:test_|trigger_|routing_)?cases|(?:trigger_)?tests|evaluations|output_evals"
    r"|trigger_evals|triggers|queries|scenarios"
)
"""Keys of lists of cases; any other list counts if each entry has a question."""


SKILL_AT_TOP: Keys = {_SKILL: keys.SKILL}
"""How the skill of a whole file is named."""


def _kind(meaning: str, *, only: str = ".+") -> Reader:
    """Return how a word such as ``negative`` is read; any other word is about something else."""

    def read(value: object) -> Draft:
        if not isinstance(value, str) or not re.fullmatch(only, normalize(value)):
            return NOTHING
        found = meaning_of(value)
        return NOTHING if found == NO_SKILL else Draft(implied=found)

    return Reader(meaning, read)


_NOT_RUN = "its commands are not run"


def _graders(value: object) -> Draft:
    if all(isinstance(e, dict) and isinstance(e.get("type"), str) for e in as_list(value)):
        return GRADERS.read(value)
    raise Flaw(_NOT_RUN, Weight.SKIPPED)


_QUERY: Keys = {
    _QUESTION: keys.PROMPT,
    "id name eval_name slug title": keys.NAME,
    _SKILL: keys.SKILL,
    "should_trigger|should_activate|should_fire|expected_trigger|expect_activation|expect_trigger"
    "|should_use|should_invoke|should_load": keys.SHOULD,
    "expected_skill|expect_skill|expected_skills|expected_activation|expected_triggers"
    "|preferred_skill|skills_expected_to_activate|expected_primary_skill"
    "|expected_selected_skill|expected_route": keys.EXPECTED_SKILL,
    "acceptable_skills|acceptable_alternates": keys.ALSO_EXPECTED,
    "forbidden_skills|must_not_activate|must_not_route": keys.FORBIDDEN,
    "skip|skipped|disabled": keys.DISABLED,
    "enabled": keys.ENABLED,
    "tags": keys.TAGS,
}
"""The keys of a query, with the skill that should be chosen."""

_KIND = _kind("the choice, where no other key says it")


def _sets_in(key: str, value: Any) -> list[Entry]:
    """Return the queries of the trigger set of a key, or of the sets in its object."""
    if isinstance(value, dict):
        skill = {} if _PART.fullmatch(key) else {"skill": key}
        return [
            Entry((key, *at), {**skill, **case} if isinstance(case, dict) else case)
            for inner, part in value.items()
            if isinstance(part, list)
            for at, case, _ in _sets_in(inner, part)
        ]
    found = _SET.fullmatch(normalize(key))
    meaning = meaning_of(found[2]) if found else None
    if not (found and meaning and isinstance(value, list)):
        return []
    shared: dict[str, Any] = {"should_trigger": meaning == own_skill(should=True)}
    if found[1]:
        shared["expected_skill"] = None
    return [Entry((key, index), _with(query, shared)) for index, query in enumerate(value)]


def _with(query: Any, shared: Mapping[str, Any]) -> Any:
    """Add what the queries of a set share; such a query may repeat the choice in other words."""
    if isinstance(query, str):
        return {"query": query, **shared}
    if not isinstance(query, dict):
        return query
    own = {key: query[key] for key in query if key not in {"expected", "expect"}}
    other = query.get("expected")
    is_name = isinstance(other, str) and " " not in other.strip() and not meaning_of(other)
    if is_name and not shared["should_trigger"]:
        own["expected_skill"] = other  # a near neighbor may name the skill that it is for
    return own | dict(shared)


def _context(value: object) -> Draft:
    if not isinstance(value, str):
        raise Flaw("is not sent: write it as text, or as 'files'", Weight.LACKS)
    return Draft(context=value.strip())


def _answer(value: object) -> Draft:
    """Read assertions, or a text: the answer in words, or a word such as ``no-use``."""
    if isinstance(value, dict) and (own := sorted(_OF_SKILL_META.intersection(value))):
        raise Flaw(f"{own[0]!r}: {IS_OURS}")
    if not isinstance(value, str):
        return ASSERTIONS.read(value)
    if _CHOSEN.fullmatch(normalize(value)):
        return Draft(choice=keys.expected_choice(value))
    return Draft(reference=tuple(stated(value, FITS)))


_OF_SKILL_META = frozenset(
    {"compile", "json", "json_schema", "run", "toml", "tool_called", "tool_order", "yaml"}
)
"""Checks of our own format that no other tool has under this name."""

_ANSWER = Reader(
    "assertions; or the answer in words, which counts if there are no assertions, unless it says "
    "the choice of the skill",
    _answer,
)
_CHOSEN = re.compile(
    r"([a-z]+_){0,3}(trigger|activat|invok)(e|ed|s|ion)?(_skill)?|(no_|not_)?used?"
)
"""Words about the choice of a skill that can hardly be an answer."""

_ABOUT_CHOICE = r"false_positive.*|near_.*|distractor|decoy|anti_.*|.*(trigger|activat|invok).*"
"""Words for kinds of cases; others, such as ``negative``, may be about the answer."""


def _find(value: Any) -> list[Entry]:
    """Return the cases of every part of a document, or the document if it is a case."""
    if isinstance(value, list):
        return [each for entry in entries_at(value) for each in _of_item(entry)]
    entries: list[Entry] = []
    for key, part in value.items() if isinstance(value, dict) else ():
        is_list = isinstance(part, list) and part and all(map(_asks, part))
        if found := _sets_in(key, part):
            entries += found
        elif is_list or _LISTS.fullmatch(key):
            entries += [Entry(path, _flat(case)) for path, case, _ in entries_at(value, key)]
    return entries or ([Entry((), _flat(value))] if _asks(value) else [])


def _of_item(item: Entry) -> list[Entry]:
    """Return an item of a list: a case, or a skill with the queries that should trigger it."""
    queries = entries_at(item.value, "queries")
    if not queries or "skill" not in item.value:
        return [Entry(item.path, _flat(item.value))]
    shared = {"skill": item.value["skill"], "should_trigger": True}
    return [Entry((*item.path, *at), _with(text, shared)) for at, text, _ in queries]


def _asks(value: object) -> bool:
    return isinstance(value, dict) and any(key in value for key in PROMPTS[:-1])


def _flat(case: Any) -> Any:
    """Return a case whose prompt is an object with the keys of that object as its own."""
    given: Mapping[str, Any] = case if isinstance(case, dict) else {}
    key = next((key for key in PROMPTS if key in given), None)
    if key is None or not isinstance(given[key], dict):
        return case
    return {**given[key], **{other: given[other] for other in given if other != key}}


EVALS_JSON = Adapter(
    tool="agentskills.io, skill-creator",
    about="https://agentskills.io/skill-creation/evaluating-skills, July 2026",
    places=(
        "{evals,evals-full}.{json,jsonl,yaml,yml}",
        "{cases,test-prompts,test_prompts,*{test,behavior,output}{-,_}cases}*.{json,jsonl,yaml,yml}",
        "{*-,*_,*.,}eval{s,}{,-,_}{all,cases,full,queries,set,#,##,}.{json,jsonl,yaml,yml}",
        "*{trigger,routing,activation}*.{json,jsonl,yaml,yml}",
        "{evaluations,evals/cases}/*.{json,jsonl,yaml,yml}",
    ),
    find=_find,
    keys={
        **_QUERY,
        "expected expect": _ANSWER,
        "type kind category": _kind("`false_positive` …", only=_ABOUT_CHOICE),
        "label polarity": _KIND,
        "assertions assert expectations expected_behavior expected_behaviors checks acceptance"
        " acceptance_criteria rubric criteria must must_have": ASSERTIONS,
        "expected_output": _ANSWER,
        "execution": keys.if_object({"assertions": ASSERTIONS, "expected_output": _ANSWER}),
        "routing": keys.if_object(
            {"target_present": keys.if_object({"expected_selected_skill": keys.EXPECTED_SKILL})}
        ),
        "routing_context": keys.if_object({"target_skill": keys.SKILL}),
        "must_include expected_outputs": worded("The answer includes this: "),
        "must_not_include forbidden_outputs": worded(
            "The answer does not include this: ", negate=True
        ),
        "expected_output_characteristics": worded("The answer has this: "),
        "must_do": worded("The answer does this: "),
        "must_avoid": worded("The answer avoids this: ", negate=True),
        "must_not must_not_have must_not_do failure_conditions anti_expectations fail": worded(
            "The answer does not do this: ", negate=True
        ),
        "must_contain expected_output_contains": searched("contains"),
        "must_not_contain": searched("not_contains"),
        "required_regex must_match": searched("regex"),
        "forbidden_regex must_not_match": searched("not_regex"),
        "ground_truth": worded("The answer agrees with this reference: "),
        "context": Reader("text before the question", _context),
        "files input_files": keys.FILES,
        "workspace|fixture|fixtures": keys.WORKSPACE,
        "setup": keys.SETUP,
        "max_turns": keys.MAX_TURNS,
        "min_pass_rate": keys.unmeasured(IS_OURS, Weight.MISTAKE),
        "expected_files|expected_artifacts|required_artifacts|output_files": keys.LEFT_FILES,
        "expected_script": keys.RAN_SCRIPT,
        "expected_references": keys.OPENED_FILES,
        "graders|validators": Reader("graders of waza or of skillgrade", _graders),
        "expected_test|deterministic_assertions": keys.unmeasured(_NOT_RUN),
        "expected_tools|expected_tool|expect_tools": keys.CALLED_TOOLS,
        "reject_tools": keys.REJECTED_TOOLS,
        "cmd": keys.unmeasured("it tests a script, not an answer", Weight.LACKS),
        "tools|environment": keys.unmeasured("a model is not given it", Weight.LACKS),
        "turns|messages|conversation|query_flow|prompt_sequence|steps|history": keys.FURTHER_TURNS,
    },
)

TRIGGERS = Adapter(
    tool="trigger lists",
    about="skill-creator of https://github.com/anthropics/skills, and "
    "https://github.com/yaojingang/yao-meta-skill, both of July 2026",
    places=(
        "trigger{-,_}{eval,evals,queries}.{json,jsonl,yaml,yml}",
        "*{trigger,routing,activation}*.{json,jsonl,yaml,yml}",
    ),
    find=_find,
    keys={**_QUERY, "expected expect": keys.SHOULD, "kind type category label polarity": _KIND},
    every=True,
)

PROMPTS_CSV = Adapter(
    tool="prompts.csv",
    about="https://developers.openai.com/blog/eval-skills, January 2026",
    places=("*{prompts,eval,evals,triggers,cases}*.csv",),
    find=lambda value: [each for each in entries_at(value) if isinstance(each.value, dict)],
    keys={
        **_QUERY,
        "expected_behavior|expected_behaviors|expect_behavior required_behaviors key_checks": (
            make.statements("a statement for a judge", FITS)
        ),
        "forbidden_behaviors|forbid_behaviors": make.statements(
            "“The answer does not do this: …”", "The answer does not do this: "
        ),
    },
)
