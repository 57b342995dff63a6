"""The console script: dispatch, help and refusals that all commands share."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_upskill.commands.main import COMMANDS, load, main, make_parser
from pytest_upskill.report.files.json import generate_schema


def test_the_module_is_the_program() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "pytest_upskill", "report", "--schema"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert process.stdout == generate_schema()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_has_its_own_help_within_80_columns(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    shown = make_parser(name, load(name)).format_help()

    assert shown.startswith(f"usage: pytest-upskill {name} ")
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0

    shown = capsys.readouterr().out
    assert all(f"\n  {name}" in shown for name in COMMANDS)
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "usage: pytest-upskill COMMAND *"),
        (["reprot"], "ERROR: no such command 'reprot': did you mean 'report'?"),
        (["xyz"], "ERROR: no such command 'xyz': write one of *report*"),
        (
            ["eval", "skills", "-k", "x"],
            "ERROR: unrecognized arguments: -k x: see * --help; options of pytest come after --",
        ),
        (["report", "--schem"], "ERROR: unrecognized arguments: --schem: see * report --help"),
    ],
)
def test_a_mistake_in_the_command_line_ends_as_one_of_pytest(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 4
    pytest.LineMatcher(capsys.readouterr().err.splitlines()).fnmatch_lines([problem])
