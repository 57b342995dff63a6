"""``pytest-upskill benchmark``: compare models on skills, with several runs."""

from __future__ import annotations

import argparse

from pytest_upskill.commands.command import Command
from pytest_upskill.commands.pytest_command import add_run_arguments, pytest_arguments, run_pytest


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser, runs=3)


def _run(options: argparse.Namespace) -> int:
    run_pytest(pytest_arguments(options))


COMMAND = Command(
    description="Print and run the pytest command that compares models on skills, 3 runs each.",
    epilog="What follows -- is passed on to pytest, such as: -- --upskill-max-cost 2 -k json",
    add_arguments=_add_arguments,
    run=_run,
    passes_on=True,
)
