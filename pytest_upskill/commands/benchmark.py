"""``pytest-upskill benchmark``: compare models on skills, with several runs."""

from __future__ import annotations

from pytest_upskill.commands.pytest_command import run_command

COMMAND = run_command(
    "Print and run the pytest command that compares models on skills, 3 runs each.", runs=3
)
