"""``pytest-upskill refine``: a better version of a skill, with proof."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_upskill.commands.command import Command
from pytest_upskill.commands.skill_folder import folder_of_skill, load_skill
from pytest_upskill.commands.teacher_command import add_teacher_arguments, run_teacher_command
from pytest_upskill.teacher.confirmation import RUNS
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.outcome import CommandOutcome
from pytest_upskill.teacher.refine import refine

_COUNTS = {
    "--steps": (4, "number of candidates to try"),
    "--runs": (RUNS, "runs of each held-out case with each version"),
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("skill", metavar="SKILL", type=Path, help="folder with a SKILL.md")
    add_teacher_arguments(parser, sources=False, counts=_COUNTS)
    parser.add_argument(
        "--apply", action="store_true", help="write an accepted version without asking"
    )


def _run(options: argparse.Namespace) -> int:
    folder = folder_of_skill(options.skill).absolute()

    def refine_with(engine: Engine) -> CommandOutcome:
        skill = load_skill(folder, engine.workplace.extensions)
        return refine(engine, skill, steps=options.steps, runs=options.runs)

    return run_teacher_command(refine_with, options, folder)


COMMAND = Command(
    description="Search for a better version of a skill, and prove it on held-out cases.",
    epilog="Example: pytest-upskill refine ./skills/csv --model opus --eval-model haiku",
    add_arguments=_add_arguments,
    run=_run,
)
