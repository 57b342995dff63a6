"""``prompts.csv``: a table of prompts with ``should_trigger``, and what is expected in words.

Read: https://developers.openai.com/blog/eval-skills (January 2026), and the files of 10 of the 19
public repositories that have one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Reader, Shape, listed
from pytest_upskill.checks import AnyCheck

_SEPARATORS = re.compile("[;\uff1b|]")
"""What stands between statements; one is the semicolon of Chinese."""


def _behaviors(prefix: str) -> Reader:
    """Return how a column of statements is read."""

    def read(value: object) -> Iterable[AnyCheck]:
        parts = [part for part in _SEPARATORS.split(str(value)) if part.strip()]
        return make.judged(parts, prefix=prefix) if parts else ()

    return Reader(f"“{prefix}…”; several with `;` or `|` between them", read)


_SHAPE = Shape(
    {
        "prompt|query|input": keys.PROMPT,
        "id|name": keys.NAME,
        "skill": keys.SKILL,
        "should_trigger|expect_trigger|should_activate": keys.SHOULD,
        "expected_skill": keys.EXPECTED_SKILL,
        "expected_behavior|expected_behaviors|expect_behavior|key_checks": _behaviors(
            "The answer fits this: "
        ),
        "required_behaviors": _behaviors("The answer does this: "),
        "forbidden_behaviors|forbid_behaviors": _behaviors("The answer does not do this: "),
    }
)


def _find(value: Any) -> list[Entry]:
    rows = listed(value)
    is_table = all(isinstance(row, dict) and {*map(type, row.values())} == {str} for _, row in rows)
    return rows if is_table else []


ADAPTER = Adapter(
    tool="prompts.csv",
    about="https://developers.openai.com/blog/eval-skills, January 2026",
    places=("*{prompts,eval,evals,triggers,cases}*.csv",),
    find=_find,
    shape=_SHAPE,
)
