"""``pytest-upskill eval``: run the cases of skills by the equivalent pytest command."""

from __future__ import annotations

from pytest_upskill.commands.pytest_command import run_command

COMMAND = run_command(
    "Run the cases of skills on models: print the pytest command and run it.", runs=1
)
