"""JUnit properties under the names that some dashboards read, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_upskill.report.names import Mirror

_OWN = "upskill."


def mirrored(
    properties: Iterable[tuple[str, object]], mirrors: Iterable[Mirror]
) -> Iterator[tuple[str, str]]:
    """Repeat a test's own properties for each dashboard.

    Datadog reads ``dd_tags[NAME]``; Codecov ``evals.scores.NAME.value``, where a dot in the name
    would begin another level, and where only numbers are scores.

    Args:
        properties: Those of one test.
        mirrors: For whom.
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
