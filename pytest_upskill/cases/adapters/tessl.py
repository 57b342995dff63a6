"""tessl: a folder for each scenario, with ``task.md`` and ``criteria.json``.

Read: https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios (October
2026), and the scenarios of tiles in its registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pytest_upskill.cases.adapters.adapter import (
    NOTHING,
    Adapter,
    Draft,
    Reads,
    Shape,
    keys,
    single,
)
from pytest_upskill.cases.adapters.fields import Name, Prompt
from pytest_upskill.cases.adapters.graders import judged
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.cases.source.json import parse_json


def _checklist(value: object) -> Draft:
    criteria = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    texts = [str(each.get("description") or each.get("name") or "") for each in criteria]
    return Draft(checks=judged(texts)) if any(texts) else NOTHING


class Scenario(Shape):
    """A task with the criteria of its checklist."""

    name: Name = NOTHING
    prompt: Prompt = keys("body")
    checklist: Annotated[Draft, Reads(_checklist, "statements for a judge")] = NOTHING


def _beside(path: Path) -> Mapping[str, Any]:
    """Return the criteria beside a task."""
    with suppress(BadFile, OSError):
        criteria = parse_json(read_text(path.with_name("criteria.json"))).value
        if isinstance(criteria, dict):
            return {"name": path.parent.name, "checklist": criteria.get("checklist")}
    return {}


ADAPTER = Adapter(
    tool="tessl",
    about="https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios",
    places=("evals/*/task*.md",),
    find=single,
    shape=Scenario,
    is_folder=True,
    beside=_beside,
    example="Which column has missing values?\n",
)
