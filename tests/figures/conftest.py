"""Baselines and repositories that tests of comparisons start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git
from tests.scripted_model import Script

UPDATE, COMPARE = "--upskill-baseline-update", "--upskill-compare=baseline"
BASELINES = ".upskill/baselines"
LENIENT = "--upskill-min-pass-rate=0"
GOOD = {"one": "++++++++++ ----------", "two": "+++++++++- ----------"}


@pytest.fixture
def file(pytester: pytest.Pytester) -> Path:
    """Name the file in which the baseline of `script`'s skill is written."""
    return pytester.path.joinpath(BASELINES, "skills", "csv", "skill_meta.json", "haiku.json")


@pytest.fixture
def recorded(script: Script, run_once: Run, file: Path) -> Path:
    """Record a baseline of a skill that helps."""
    assert run_once(*script(**GOOD), UPDATE, LENIENT).ret == pytest.ExitCode.OK
    return file
