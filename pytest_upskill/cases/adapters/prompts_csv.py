"""``prompts.csv``: a table of prompts with ``should_trigger``, and what is expected in words.

Read: https://developers.openai.com/blog/eval-skills (January 2026), and the files of 10 of the 19
public repositories that have one.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pytest_upskill.cases.adapters.adapter import (
    NOTHING,
    Adapter,
    Draft,
    Entry,
    Reads,
    Shape,
    keys,
)
from pytest_upskill.cases.adapters.fields import Expected, Name, Prompt, Should, Skill
from pytest_upskill.cases.adapters.graders import judged

_SEPARATORS = re.compile("[;\uff1b|]")
"""What stands between statements; one is the semicolon of Chinese."""


def Behaviors(prefix: str) -> Reads:  # noqa: N802  like a type
    """Mark a column of statements."""

    def read(value: object) -> Draft:
        parts = [part for part in _SEPARATORS.split(str(value)) if part.strip()]
        return Draft(checks=judged(parts, prefix=prefix)) if parts else NOTHING

    return Reads(read, f"“{prefix}…”; several with `;` or `|` between them")


class Row(Shape):
    """A row of the table."""

    prompt: Prompt = keys("prompt", "query", "input")
    id: Name = keys("id", "name")
    skill: Skill = NOTHING
    should_trigger: Should = keys("should_trigger", "expect_trigger", "should_activate")
    expected_skill: Expected = NOTHING
    expected: Annotated[Draft, Behaviors("The answer fits this: ")] = keys(
        "expected_behavior", "expected_behaviors", "expect_behavior", "key_checks"
    )
    required: Annotated[Draft, Behaviors("The answer does this: ")] = keys("required_behaviors")
    forbidden: Annotated[Draft, Behaviors("The answer does not do this: ")] = keys(
        "forbidden_behaviors", "forbid_behaviors"
    )


def _find(value: Any) -> list[Entry]:
    rows = value if isinstance(value, list) else []
    is_table = all(isinstance(row, dict) and {*map(type, row.values())} == {str} for row in rows)
    return [Entry((index,), row) for index, row in enumerate(rows) if is_table]


ADAPTER = Adapter(
    tool="prompts.csv",
    about="https://developers.openai.com/blog/eval-skills, January 2026",
    places=("*{prompts,eval,evals,triggers,cases}*.csv",),
    find=_find,
    shape=Row,
    example="""\
id,should_trigger,prompt,expected_behavior
columns,true,Which columns are empty?,Names the column price; counts its rows
weather,false,What is the weather?,
""",
)
