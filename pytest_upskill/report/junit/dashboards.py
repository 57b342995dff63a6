"""JUnit properties under the only names that some dashboards read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, get_args

Dashboard = Literal["datadog", "codecov"]
DASHBOARDS: tuple[Dashboard, ...] = get_args(Dashboard)
"""Dashboards for which JUnit properties are repeated under other names."""

_OWN = "upskill."


def mirror_properties(
    properties: Iterable[tuple[str, object]], mirrors: Iterable[Dashboard]
) -> Iterator[tuple[str, str]]:
    """Yield this plugin's properties of a test again, under each dashboard's names.

    Datadog reads ``dd_tags[NAME]``. Codecov reads ``evals.scores.NAME.value``; a dot in NAME would
    start another level, and only numbers are scores.

    Args:
        properties: Properties of one test.
        mirrors: Dashboards.
    """
    own = [(name, str(value)) for name, value in properties if name.startswith(_OWN)]
    for mirror in mirrors:
        for name, value in own:
            if mirror == "datadog":
                yield f"dd_tags[{name}]", value
            elif _is_number(value):
                score = f"evals.scores.{name.removeprefix(_OWN).replace('.', '_')}"
                yield f"{score}.type", "float"
                yield f"{score}.value", value


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
