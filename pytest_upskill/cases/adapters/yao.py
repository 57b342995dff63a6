"""yao-meta-skill: ``evals/trigger_cases.json``, and the cases of its output lab.

Read: ``scripts/trigger_eval.py`` and ``scripts/run_output_eval.py`` of
https://github.com/yaojingang/yao-meta-skill at c37915e (July 2026), and skills made with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, listed, reader_of_each
from pytest_upskill.cases.adapters.assertions import items_of
from pytest_upskill.cases.adapters.draft import an_object
from pytest_upskill.checks import AnyCheck

_SETS = {"should_trigger": True, "should_not_trigger": False, "near_neighbor": False}
_OUTPUTS = frozenset({"baseline_output", "with_skill_output"})


def _assertion(value: Any) -> Sequence[AnyCheck]:
    """Read texts that an answer must have or must not have; without any, a statement."""
    given: Mapping[str, Any] = (
        {"description": value} if isinstance(value, str) else an_object(value)
    )
    sides = ((given.get("required"), False), (given.get("forbidden"), True))
    found = [make.literals(texts, negate=negate) for texts, negate in sides if texts]
    return sum(found, ()) or make.judged(given.get("description"))


def _find(value: Any) -> list[Entry]:
    """Return the queries of the three sets, or the questions with outputs to compare."""
    if isinstance(value, dict) and _SETS.keys() & value.keys():
        return [
            Entry(path, _query(query, should=should))
            for key, should in _SETS.items()
            for path, query in listed(value, key)
        ]
    return [
        each
        for each in listed(value, *(["cases"] if isinstance(value, dict) else []))
        if isinstance(each.value, dict) and not _OUTPUTS.isdisjoint(each.value)
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
    keys={
        "text|prompt": keys.PROMPT,
        "id": keys.NAME,
        "should_trigger": keys.SHOULD,
        "expected_skill": keys.EXPECTED_SKILL,
        "assertions": reader_of_each(
            "texts, `required` or `forbidden`; or statements for a judge", _assertion, items_of
        ),
    },
    every=True,
)
