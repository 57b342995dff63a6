"""``pytest-upskill refine``: a better version of a skill, with proof."""

from __future__ import annotations

import argparse

from pytest_upskill.commands.command import Command
from pytest_upskill.commands.teacher_command import (
    add_teacher_arguments,
    count,
    exit_code,
    folder_of_skill,
    run_with,
)
from pytest_upskill.teacher.proof.confirmation import RUNS
from pytest_upskill.teacher.refine import Order, refine
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.load import load_skill
from pytest_upskill.teacher.work.terms import Terms

_STEPS = 4


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("skill", help="folder of the skill")
    add_teacher_arguments(parser, sources=False)
    parser.add_argument(
        "--steps",
        type=count,
        default=_STEPS,
        metavar="N",
        help="number of candidates to try (default: %(default)s)",
    )
    parser.add_argument(
        "--runs",
        type=count,
        default=RUNS,
        metavar="N",
        help="runs of each held-out case with each version (default: %(default)s)",
    )
    parser.add_argument(
        "--apply", action="store_true", help="write an accepted version without asking"
    )


def _run(options: argparse.Namespace) -> int:
    folder = folder_of_skill(options.skill)

    def work(engine: Engine, terms: Terms) -> int:
        skill = load_skill(folder, engine.workplace.extensions)
        order = Order(skill=skill, steps=options.steps, runs=options.runs, terms=terms)
        return exit_code(refine(engine, order))

    return run_with(work, options, folder)


COMMAND = Command(
    description="Search for a better version of a skill, and prove it on held-out cases.",
    epilog="Example: pytest-upskill refine ./skills/csv --model opus --eval-model haiku",
    add_arguments=_add_arguments,
    run=_run,
)
