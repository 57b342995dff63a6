"""``pytest-upskill generate``: a new skill with its cases and its lift."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_upskill.commands.command import PASSED, Command, CommandError
from pytest_upskill.commands.teacher_command import (
    add_teacher_arguments,
    count,
    exit_code,
    run_with,
    sources_of,
)
from pytest_upskill.teacher.generate import UNMEASURED, generate
from pytest_upskill.teacher.generation_plan import Order
from pytest_upskill.teacher.proof.confirmation import RUNS
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.terms import Terms

_COUNT = 24
_STEPS = 3


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", help="what the skill is for")
    add_teacher_arguments(parser, sources=True)
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
        help="write only the skill, without cases or a measurement",
    )
    parser.add_argument(
        "--count",
        type=count,
        default=_COUNT,
        metavar="N",
        help="number of cases to keep (default: %(default)s)",
    )
    parser.add_argument(
        "--steps",
        type=count,
        default=_STEPS,
        metavar="N",
        help="number of versions to try (default: %(default)s)",
    )
    parser.add_argument(
        "--runs",
        type=count,
        default=RUNS,
        metavar="N",
        help="runs of each held-out case with and without the skill (default: %(default)s)",
    )


def _run(options: argparse.Namespace) -> int:
    if not options.task.strip():
        raise CommandError("the task is empty: say what the skill is for")
    sources = sources_of(options)
    examples = "".join(f"\n\nFor example: {example}" for example in options.example)

    def work(engine: Engine, terms: Terms) -> int:
        order = Order(
            task=options.task + examples,
            sources=sources,
            output=options.output,
            measured=not options.no_eval,
            count=options.count,
            steps=options.steps,
            runs=options.runs,
            terms=terms,
        )
        decision = generate(engine, order)
        return PASSED if decision.reason == UNMEASURED else exit_code(decision)

    return run_with(work, options, Path(), students=not options.no_eval)


COMMAND = Command(
    description="Write a skill and its cases, and measure it on held-out cases.",
    epilog='Example: pytest-upskill generate "write nvidia kernels" --from ./trace.md',
    add_arguments=_add_arguments,
    run=_run,
)
