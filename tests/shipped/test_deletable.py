"""The rooms of agents and of the teacher can be deleted, and the rest works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import CHECKOUT


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package without its agents and its teacher."""
    top = tmp_path_factory.mktemp("without")
    package = top / "pytest_upskill"
    shutil.copytree(CHECKOUT / "pytest_upskill", package)
    shutil.rmtree(package / "agents")
    shutil.rmtree(package / "teacher")
    shutil.copytree(CHECKOUT / "example_skills" / "yaml-parsing", top / "yaml-parsing")
    return top


@pytest.mark.parametrize(
    "arguments",
    [
        ["pytest", "--upskill-models", "offline", "-n", "2", "--upskill-html", "r.html"],
        ["pytest_upskill", "eval", "yaml-parsing", "-m", "offline"],
        ["pytest_upskill", "list"],
    ],
    ids=" ".join,
)
def test_the_rest_works_without_agents_and_teacher(without: Path, arguments: list[str]) -> None:
    process = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=without,
        env={**os.environ, "PYTHONPATH": str(without)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    assert process.returncode == 0, process.stdout


def test_what_needs_a_deleted_room_fails_by_its_name(without: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "pytest_upskill", "refine", "yaml-parsing"],
        cwd=without,
        env={**os.environ, "PYTHONPATH": str(without)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "No module named 'pytest_upskill.teacher'" in process.stderr
