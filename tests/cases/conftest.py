"""A skill without cases, and the evals files that tests write for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FACT, QUESTION, Run

CASE = {"id": 1, "prompt": QUESTION, "assertions": [{"type": "contains", "value": "37"}]}
IDS = [
    "skills/billing/evals/evals.json::1[offline-with_skill]",
    "skills/billing/evals/evals.json::1[offline-without_skill]",
]


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    folder = pytester.path / "skills" / "billing"
    folder.mkdir(parents=True)
    text = f"---\nname: billing\ndescription: Facts for a test.\n---\n\n# billing\n\n{FACT}"
    (folder / "SKILL.md").write_text(text, "utf-8")
    return folder


def write(path: Path, value: Any = (CASE,)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


def collected(run: Run, *args: str) -> list[str]:
    result = run("--upskill-models", "offline", "--collect-only", "-q", *(args or ("skills",)))
    return [line for line in result.outlines if "::" in line]
