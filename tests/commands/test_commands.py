"""The console script: dispatch, help and refusals that all commands share."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_upskill.commands.main import COMMANDS, main
from pytest_upskill.report.files.json import SCHEMA


def test_the_module_is_the_program() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "pytest_upskill", "report", "--schema"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert process.stdout == SCHEMA.read_text("utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_has_its_own_help_within_80_columns(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])

    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: pytest-upskill {name} ")
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])

    shown = capsys.readouterr().out
    assert all(f"\n    {name}" in shown for name in COMMANDS)
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "ERROR: the following arguments are required: COMMAND: see pytest-upskill --help"),
        (["reprot"], "ERROR: argument COMMAND: invalid choice: 'reprot' (choose from *report*"),
        (
            ["eval", "skills", "-k", "x"],
            "ERROR: unrecognized arguments: -k x: see pytest-upskill eval --help",
        ),
        (["list", "--", "-q"], "ERROR: only eval and benchmark pass on what follows --: *"),
        (
            ["report", "--schem"],
            "ERROR: unrecognized arguments: --schem (did you mean '--schema'[?]): see * --help",
        ),
    ],
)
def test_a_mistake_in_the_command_line_ends_as_one_of_pytest(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 4
    pytest.LineMatcher(capsys.readouterr().err.splitlines()).fnmatch_lines([problem])
