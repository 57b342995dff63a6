"""A skill on tables, for which tests write case files of other tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest

from tests.conftest import Run

SKILL = """\
---
name: csv
description: Finds empty columns in tables. Use it when asked which columns of a table are empty.
---

# csv

Which column has missing values? The column price has 37 missing values.
"""
QUESTION = "Which column has missing values?"
"""Only the text of the skill answers it."""

CHARTS = {
    "skills/charts/SKILL.md": """\
---
name: charts
description: Draws charts of prices. Use it when asked to draw a chart.
---

# charts
"""
}
"""Another skill, for suites that name it."""

Measured = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Runs a suite of files, and returns the outcome of each trial: pass, fail or skip."""

_OUTCOME = re.compile(
    r"\S+::(?P<id>.+)\[offline-(?P<arm>\w+)\] (?:(?:BASELINE|OFFLINE) )?(?P<word>PASS|FAIL|SKIP)"
)


@pytest.fixture
def measured(pytester: pytest.Pytester, run_once: Run) -> Measured:
    def measure(files: Mapping[str, str]) -> Mapping[str, str]:
        suite = {"skills/csv/SKILL.md": SKILL, **files}
        for name, text in suite.items():
            path = pytester.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        result = run_once("--upskill-models", "offline", "-v", "-W", "default", ".")
        found = filter(None, map(_OUTCOME.match, result.outlines))
        return {f"{each['id']} {each['arm']}": each["word"].lower() for each in found}

    return measure
