"""``pytest-upskill cases``: validated cases for a skill."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_upskill.commands.command import Command
from pytest_upskill.commands.teacher_command import (
    add_teacher_arguments,
    count,
    exit_code,
    folder_of_skill,
    run_with,
    sources_of,
)
from pytest_upskill.teacher import harden
from pytest_upskill.teacher.cases import Order, propose_cases
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.load import load_evals, load_skill
from pytest_upskill.teacher.work.terms import Terms

_COUNT = 24


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("skill", help="folder of the skill")
    add_teacher_arguments(parser, sources=True)
    parser.add_argument(
        "--count",
        type=count,
        default=_COUNT,
        metavar="N",
        help="number of cases to keep (default: %(default)s)",
    )
    parser.add_argument(
        "--harden",
        action="store_true",
        help="turn the prose statements of an evals file into code checks instead",
    )
    parser.add_argument("--apply", action="store_true", help="write the cases without asking")


def _run(options: argparse.Namespace) -> int:
    folder = folder_of_skill(options.skill)
    sources = sources_of(options)

    def propose(engine: Engine, terms: Terms) -> int:
        skill = load_skill(folder, engine.workplace.extensions)
        order = Order(skill=skill, sources=sources, count=options.count, terms=terms)
        return exit_code(propose_cases(engine, order))

    if options.harden:
        return run_with(partial(_harden, folder), options, folder, students=False)
    return run_with(propose, options, folder)


def _harden(folder: Path, engine: Engine, terms: Terms) -> int:
    skill = load_evals(folder, engine.workplace.extensions)
    order = harden.Order(skill=skill, terms=replace(terms, students=()))
    return exit_code(harden.harden(engine, order))


COMMAND = Command(
    description="Propose cases for a skill; keep those that tell right answers from wrong ones.",
    epilog="Example: pytest-upskill cases ./skills/csv --from ./docs/csv.md --model opus",
    add_arguments=_add_arguments,
    run=_run,
)
