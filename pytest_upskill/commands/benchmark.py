"""``pytest-upskill benchmark``: compare models on skills, with several runs."""

from __future__ import annotations

from pytest_upskill.commands.eval import run_command

COMMAND = run_command("Compare models on skills: eval with 3 runs of each case.", runs=3)
