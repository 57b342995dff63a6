"""``pytest-upskill cases``: validated cases for a skill."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_upskill.commands.command import Command
from pytest_upskill.commands.skill_folder import folder_of_skill, load_skill
from pytest_upskill.commands.teacher_command import add_teacher_arguments, run_teacher_command
from pytest_upskill.teacher.cases import propose_cases
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.harden import harden
from pytest_upskill.teacher.outcome import CommandOutcome
from pytest_upskill.teacher.sources import read_sources


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("skill", metavar="SKILL", type=Path, help="folder with a SKILL.md")
    counts = {"--count": (24, "number of cases to keep")}
    add_teacher_arguments(parser, sources=True, counts=counts)
    parser.add_argument(
        "--harden",
        action="store_true",
        help="instead, turn the statements of an evals file into checks by code",
    )
    parser.add_argument("--apply", action="store_true", help="write the cases without asking")


def _run(options: argparse.Namespace) -> int:
    folder = folder_of_skill(options.skill).absolute()

    def propose_with(engine: Engine) -> CommandOutcome:
        skill = load_skill(folder, engine.workplace.extensions, evals=options.harden)
        if options.harden:
            return harden(engine, skill)
        return propose_cases(engine, skill, read_sources(options.sources), count=options.count)

    return run_teacher_command(propose_with, options, folder, students=not options.harden)


COMMAND = Command(
    description="Propose cases for a skill; keep those that tell right answers from wrong ones.",
    epilog="Example: pytest-upskill cases ./skills/csv --from ./docs/csv.md --model opus",
    add_arguments=_add_arguments,
    run=_run,
)
