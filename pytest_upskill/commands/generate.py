"""``pytest-upskill generate``: a new skill with its cases and its lift."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_upskill.commands.command import Command, CommandError
from pytest_upskill.commands.teacher_command import add_teacher_arguments, run_teacher_command
from pytest_upskill.teacher.confirmation import RUNS
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.generate import GenerateSettings, generate
from pytest_upskill.teacher.outcome import CommandOutcome
from pytest_upskill.teacher.sources import read_sources

_COUNTS = {
    "--count": (24, "number of cases to keep"),
    "--steps": (3, "number of edited versions to try"),
    "--runs": (RUNS, "runs of each held-out case with and without the skill"),
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="what the skill is for")
    add_teacher_arguments(parser, sources=True, counts=_COUNTS)
    parser.add_argument(
        "-e",
        "--example",
        action="append",
        default=[],
        metavar="TEXT",
        help="an example of input and output; repeatable",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="folder of the new skill (default: skills/NAME)",
    )
    parser.add_argument(
        "--no-eval",
        action="store_true",
        help="write only the skill: no cases, no measurement",
    )


def _run(options: argparse.Namespace) -> int:
    if not options.task.strip():
        raise CommandError("the task is empty: say what the skill is for")
    examples = "".join(f"\n\nFor example: {example}" for example in options.example)

    def generate_with(engine: Engine) -> CommandOutcome:
        settings = GenerateSettings(
            task=options.task + examples,
            sources=read_sources(options.sources),
            output=options.output,
            count=options.count,
            steps=options.steps,
            runs=options.runs,
        )
        return generate(engine, settings)

    return run_teacher_command(generate_with, options, Path(), students=not options.no_eval)


COMMAND = Command(
    description="Write a skill and its cases, and measure it on held-out cases.",
    epilog='Example: pytest-upskill generate "write nvidia kernels" --from ./trace.md',
    add_arguments=_add_arguments,
    run=_run,
)
