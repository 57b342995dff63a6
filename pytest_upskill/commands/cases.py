"""``pytest-upskill cases``: validated cases for a skill."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_upskill.commands.command import Command
from pytest_upskill.commands.teacher_command import (
    add_teacher_arguments,
    consent_of,
    count,
    exit_code,
    folder_of_skill,
    limits_of,
    run_with,
    sources_of,
)
from pytest_upskill.completions.workplace import Workplace
from pytest_upskill.model import Model
from pytest_upskill.teacher import harden
from pytest_upskill.teacher.cases import Order, propose_cases
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.load import load_evals, load_skill

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

    def work(workplace: Workplace, students: tuple[Model, ...], teacher: Model, state: Path) -> int:
        limits = limits_of(options)
        engine = Engine(workplace, limits)
        if options.harden:
            return exit_code(
                harden.harden(
                    engine,
                    harden.Order(
                        skill=load_evals(folder, workplace.extensions),
                        teacher=teacher,
                        limits=limits,
                        consent=consent_of(options),
                        dry_run=options.dry_run,
                        state=state,
                    ),
                )
            )
        order = Order(
            skill=load_skill(folder, workplace.extensions),
            sources=sources,
            teacher=teacher,
            students=students,
            count=options.count,
            limits=limits,
            consent=consent_of(options),
            dry_run=options.dry_run,
            state=state,
        )
        return exit_code(propose_cases(engine, order))

    return run_with(work, options, folder, students=not options.harden)


COMMAND = Command(
    description="Propose cases for a skill; keep those that tell right answers from wrong ones.",
    epilog="Example: pytest-upskill cases ./skills/csv --from ./docs/csv.md --model opus",
    add_arguments=_add_arguments,
    run=_run,
)
