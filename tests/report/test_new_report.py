"""A further report is a module, a row and an option; a further command a module and a row."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.test_new_host import put
from tests.pages import CHECKOUT

REPORT = """
def write_words(report):
    return "".join(f"{gate.cell.name}: {gate.cell.lift.verdict}\\n" for gate in report.gates)
"""
COMMAND = """
from pytest_upskill.commands.command import PASSED, say


def add(parser):
    parser.add_argument("name")
    parser.set_defaults(run=greet)


def greet(options):
    say(f"hello {options.name}")
    return PASSED
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    copy = tmp_path / "pytest_upskill"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "pytest_upskill", copy, ignore=ignored)
    shutil.copytree(CHECKOUT / "example_skills" / "yaml-parsing", tmp_path / "yaml-parsing")
    return copy


def run(package: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=package.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_new_report_is_a_module_a_row_and_an_option(package: Path) -> None:
    (package / "report/files/words.py").write_text(REPORT, "utf-8")
    put(
        package / "report/files/write.py",
        '    "json": ',
        '    "words": ("words:write_words", "yaml-parsing on"),\n    "json": ',
    )
    put(
        package / "session/options.py",
        '    Option("json", ',
        '    Option("words", "Write words.", "PATH"),\n    Option("json", ',
    )

    options = ("-n0", "--upskill-models=offline", "--upskill-words=a.txt", "--upskill-json=a.json")
    run(package, "pytest", *options, "yaml-parsing")
    for _ in range(2):  # the second time, it replaces the first
        run(package, "pytest_upskill", "report", "a.json", "--words=b.txt")

    words = (package.parent / "a.txt").read_text("utf-8")
    assert words == "yaml-parsing on offline: helps\n"
    assert (package.parent / "b.txt").read_text("utf-8") == words


def test_a_new_command_is_a_module_and_a_row(package: Path) -> None:
    (package / "commands/greet.py").write_text(COMMAND, "utf-8")
    put(
        package / "commands/main.py",
        '    "report": ',
        '    "greet": ("greet:add", "greet"),\n    "report": ',
    )

    assert run(package, "pytest_upskill", "greet", "Ada") == "hello Ada\n"
    assert "greet" in run(package, "pytest_upskill", "--help")
