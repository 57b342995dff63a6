"""A branch that takes cases or skills out of the measurement, and how a run says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import WriteSkill
from tests.git_repository import commit_all, git

ARGS = ("--upskill-models=offline", "--upskill-compare=main", "--upskill-md=r.md", "skills")


CASES = [{"id": n, "input": "How long?", "expected": {"regex": "."}} for n in ("a", "b")]


@pytest.fixture
def branch(write_skill: WriteSkill, pytester: pytest.Pytester) -> Path:
    folder = write_skill(*CASES)
    write_skill(name="shipping")
    (folder / "evals").mkdir()
    more = [{"id": "c", "prompt": "Why?", "assertions": [{"type": "regex", "value": "."}]}]
    (folder / "evals" / "evals.json").write_text(json.dumps(more), "utf-8")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    return folder


def change(folder: Path) -> None:
    file = folder / "SKILL.md"
    file.write_text(f"{file.read_text('utf-8')}More.\n", "utf-8")


def said(
    result: pytest.RunResult, line: str, why: str = "some of what changed may not be measured"
) -> None:
    result.stdout.fnmatch_lines([f"upskill: {line}"])
    page = Path("r.md").read_text("utf-8")
    _, title, *_ = page.splitlines()
    assert "\u2705" not in title
    assert why in title
    assert line.partition(" ")[0] in page
