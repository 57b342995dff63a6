"""tessl: a folder for each scenario, with ``task.md`` and ``criteria.json``.

Read: https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios (October
2026), and the scenarios of tiles in its registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_upskill.cases.adapters import keys, make
from pytest_upskill.cases.adapters.adapter import Adapter, Entry, Reader, Shape
from pytest_upskill.cases.adapters.documents import object_in
from pytest_upskill.cases.adapters.draft import an_object, as_list
from pytest_upskill.checks import AnyCheck


def _checklist(value: object) -> Iterable[AnyCheck]:
    criteria = map(an_object, as_list(value))
    return make.judged([str(e.get("description") or e.get("name") or "") for e in criteria])


_SHAPE = Shape(
    {
        "name": keys.NAME,
        "body": keys.PROMPT,
        "checklist": Reader("statements for a judge", _checklist),
    }
)


def _find(value: Any) -> list[Entry]:
    return [Entry((), value)] if isinstance(value, dict) else []


def _beside(path: Path) -> Mapping[str, Any]:
    """Return the criteria beside a task."""
    criteria = object_in(path.with_name("criteria.json"))
    return {"name": path.parent.name, "checklist": criteria.get("checklist")} if criteria else {}


ADAPTER = Adapter(
    tool="tessl",
    about="https://docs.tessl.io/improving-your-skills/evaluate-skill-quality-using-scenarios",
    places=("evals/*/task*.md",),
    find=_find,
    shape=_SHAPE,
    is_folder=True,
    beside=_beside,
)
