"""What Linux alone has is not needed to run skills and build their code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill

ANSWER = "Written so:\n\n```c\nint add(int a, int b) { return a + b; }\n```\n"


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what macOS lacks: processors of a process, /proc, bubblewrap, Landlock."""
    glob = Path.glob
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr("pytest_upskill.sandbox.run.sys.platform", "darwin")
    monkeypatch.setattr(
        Path, "glob", lambda self, *args: iter(()) if self == Path("/proc") else glob(self, *args)
    )


@pytest.mark.needs("gcc")
@pytest.mark.usefixtures("elsewhere")
def test_a_skill_runs_and_its_code_is_built(run_once: Run, write_skill: WriteSkill) -> None:
    case = {"id": "add", "input": "Add two numbers in C.", "expected": {"compile": "c"}}
    write_skill(case, body=f"To add two numbers in C, write:\n\n{ANSWER}")

    result = run_once("--upskill-models", "offline", "skills")

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["  offline  0->100% *"])
