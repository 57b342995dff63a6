"""``pytest-upskill eval``: run the cases of skills by the equivalent pytest command."""

from __future__ import annotations

import argparse

from pytest_upskill.commands.command import Command
from pytest_upskill.commands.pytest_command import add_run_arguments, pytest_arguments, run_pytest


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser, runs=1)


def _run(options: argparse.Namespace) -> int:
    run_pytest(pytest_arguments(options))


COMMAND = Command(
    description="Print and run the pytest command that runs the cases of skills on models.",
    epilog="What follows -- is passed on to pytest, such as: -- --upskill-max-cost 2 -k json",
    add_arguments=_add_arguments,
    run=_run,
    passes_on=True,
)
