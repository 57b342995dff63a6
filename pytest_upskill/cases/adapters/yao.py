"""yao-meta-skill: ``evals/trigger_cases.json``, and the cases of its output lab.

Read: ``scripts/trigger_eval.py`` and ``scripts/run_output_eval.py`` of
https://github.com/yaojingang/yao-meta-skill at c37915e (July 2026), and skills made with it.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from pytest_upskill.cases.adapters.adapter import NOTHING, Adapter, Draft, Entry, Shape, keys
from pytest_upskill.cases.adapters.assertions import as_list
from pytest_upskill.cases.adapters.fields import Expected, Name, Prompt, Should
from pytest_upskill.cases.adapters.graders import judged, literals

_SETS = {"should_trigger": True, "should_not_trigger": False, "near_neighbor": False}
_OUTPUTS = frozenset({"baseline_output", "with_skill_output"})


class Assertion(Shape):
    """Texts that an answer must have or must not have; without any, a statement."""

    description: str = ""
    required: list[str] = Field(default_factory=list)
    forbidden: list[str] = Field(default_factory=list)

    def draft(self) -> Draft:
        """Return the checks; upper and lower case are the same."""
        sides = ((self.required, False), (self.forbidden, True))
        found = [literals(texts, ignore_case=True, negate=no) for texts, no in sides if texts]
        return Draft(checks=sum(found, ()) or judged(self.description))


def _as_objects(value: object) -> list[object]:
    return [{"description": each} if isinstance(each, str) else each for each in as_list(value)]


class YaoCase(Shape):
    """A query, or a question of the output lab."""

    prompt: Prompt = keys("text", "prompt")
    id: Name = NOTHING
    should_trigger: Should = NOTHING
    expected_skill: Expected = NOTHING
    assertions: Annotated[tuple[Assertion, ...], BeforeValidator(_as_objects)] = ()


def _find(value: Any) -> list[Entry]:
    """Return the queries of the three sets, or the questions with outputs to compare."""
    if isinstance(value, dict) and _SETS.keys() & value.keys():
        return [
            Entry((key, index), _query(query, should=should))
            for key, should in _SETS.items()
            for index, query in enumerate(value.get(key) or ())
        ]
    cases, at = (value.get("cases"), ("cases",)) if isinstance(value, dict) else (value, ())
    return [
        Entry((*at, index), case)
        for index, case in enumerate(cases if isinstance(cases, list) else ())
        if isinstance(case, dict) and not _OUTPUTS.isdisjoint(case)
    ]


def _query(query: Any, *, should: bool) -> Any:
    """Return a query with its choice; a near neighbor may name the skill that it is for."""
    if isinstance(query, str):
        return {"text": query, "should_trigger": should}
    if not isinstance(query, dict):
        return query
    own = {key: value for key, value in query.items() if key != "expected"}
    other = None if should else query.get("expected")
    return own | {"should_trigger": should} | ({"expected_skill": other} if other else {})


ADAPTER = Adapter(
    tool="yao-meta-skill",
    about="https://github.com/yaojingang/yao-meta-skill, July 2026",
    places=(
        "trigger_cases*.{json,jsonl}",
        "output_cases*.{json,jsonl}",
        "evals/output/cases*.jsonl",
    ),
    find=_find,
    shape=YaoCase,
    every=True,
    example="""\
{
  "should_trigger": [{"text": "Which columns are empty?", "family": "columns"}],
  "should_not_trigger": [{"text": "What is the weather?"}],
  "near_neighbor": [{"text": "Draw a chart of the prices", "expected": "charts"}]
}
""",
)
