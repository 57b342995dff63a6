"""The rooms of agents and of the teacher can be deleted, and the rest works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import CHECKOUT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def neither(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _without(tmp_path_factory.mktemp("neither"), "agents", "teacher")


@pytest.mark.parametrize(
    "arguments",
    [
        ["pytest", "--upskill-models", "offline", "-n", "1", "--upskill-html", "r.html"],
        ["pytest_upskill", "eval", "yaml-parsing", "-m", "offline"],
        ["pytest_upskill", "list"],
    ],
    ids=" ".join,
)
def test_the_rest_works_without_the_deleted_rooms(neither: Path, arguments: list[str]) -> None:
    process = _run_python(neither, *arguments)

    assert process.returncode == 0, process.stdout


@pytest.mark.parametrize(
    ("room", "arguments"),
    [
        ("teacher", ["pytest_upskill", "refine", "yaml-parsing"]),
        ("agents", ["pytest", "--upskill-models", "loop:offline", "-n", "0", "yaml-parsing"]),
    ],
)
def test_what_needs_a_deleted_room_fails_by_its_name(
    tmp_path: Path, room: str, arguments: list[str]
) -> None:
    process = _run_python(_without(tmp_path, room), *arguments)

    assert f"No module named 'pytest_upskill.{room}" in process.stdout


def _without(folder: Path, *rooms: str) -> Path:
    """Copy the package without some rooms to a folder, beside a skill."""
    package = folder / "pytest_upskill"
    shutil.copytree(CHECKOUT / "pytest_upskill", package)
    for room in rooms:
        shutil.rmtree(package / room)
    shutil.copytree(CHECKOUT / "example_skills" / "yaml-parsing", folder / "yaml-parsing")
    return folder


def _run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
