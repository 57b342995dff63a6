"""Options and session that ``refine``, ``cases`` and ``generate`` share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_upskill.answers.workplace import Workplace
from pytest_upskill.cells.gate import NOT_MEASURED
from pytest_upskill.commands.command import PASSED, UNUSABLE, whole_number_type
from pytest_upskill.model import Model
from pytest_upskill.session.without_tests.workplace import run_in_session
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.outcome import CommandOutcome, Decision
from pytest_upskill.teacher.terms import Consent, Terms

_EXIT_CODES: Mapping[Decision, int] = {
    "accepted": PASSED,
    "not shown": 1,
    "refused": UNUSABLE,
    "stopped": NOT_MEASURED,
}
"""Exit codes as of pytest: tests passed, failed, wrong usage, and not enough data to decide."""

_MAX_COUNT = 500
"""Most runs, steps or cases: the runs of one look must not reach the numbers of the next."""

_TEACHER = "opus"
_STUDENT = "haiku"


def add_teacher_arguments(
    parser: argparse.ArgumentParser, *, sources: bool, counts: Mapping[str, tuple[int, str]]
) -> None:
    """Add the options of all commands that have a teacher, and numbers of runs, steps or cases.

    Args:
        parser: The command's parser.
        sources: Whether the command reads sources.
        counts: Default and help of each number, by the name of its option.
    """
    _add_models(parser)
    if sources:
        _add_sources(parser)
    _add_limits(parser, counts)
    parser.set_defaults(yes=False, apply=False)  # not every command has these options
    parser.add_argument(
        "--dry-run", action="store_true", help="print the plan and its maximum cost, then stop"
    )


def _add_models(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("models")
    group.add_argument(
        *("-m", "--model", "--m"),
        default=_TEACHER,
        metavar="TEACHER",
        help="the teacher, which writes (default: %(default)s)",
    )
    group.add_argument(
        "--eval-model",
        action="append",
        metavar="STUDENT",
        help=f"a student, which the skill is for; repeatable (default: {_STUDENT})",
    )
    group.add_argument(
        "--eval-base-url",
        metavar="URL",
        help="OpenAI-compatible server for students that name no host",
    )
    group.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="parameter of the students' requests, as in --upskill-param; repeatable",
    )


def _add_sources(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sources")
    group.add_argument(
        *("-f", "--from"),
        dest="sources",
        action="append",
        type=Path,
        default=[],
        metavar="SOURCE",
        help="a document, a trace of an agent, or a skill; repeatable",
    )
    group.add_argument("-y", "--yes", action="store_true", help="send the sources without asking")


def _add_limits(parser: argparse.ArgumentParser, counts: Mapping[str, tuple[int, str]]) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument(
        "--max-cost",
        type=_dollars,
        default=5.0,
        metavar="USD",
        help="maximum cost in dollars (default: %(default)g)",
    )
    group.add_argument(
        "--max-answers",
        type=whole_number_type(1),
        metavar="N",
        help="maximum number of answers; needed for models without a price",
    )
    for option, (default, meaning) in counts.items():
        group.add_argument(
            option,
            type=whole_number_type(1, _MAX_COUNT),
            default=default,
            metavar="N",
            help=f"{meaning} (default: %(default)s)",
        )


def run_teacher_command(
    run: Callable[[Engine], CommandOutcome],
    options: argparse.Namespace,
    place: Path,
    *,
    students: bool = True,
) -> int:
    """Run a command in the session that pytest would run at a place; return the exit code.

    Args:
        run: The command.
        options: Values of the command's options.
        place: The file or folder for which pytest would choose its settings.
        students: Whether the command needs students; otherwise their keys may be missing.
    """

    def run_in_workplace(
        workplace: Workplace, models: tuple[Model, ...], teacher: Model, state: Path
    ) -> int:
        terms = Terms(
            teacher=teacher,
            students=models if students else (),
            max_cost=options.max_cost,
            max_answers=options.max_answers,
            consent=Consent(
                yes=options.yes,
                apply=options.apply,
                terminal=sys.stdin if sys.stdin.isatty() and sys.stderr.isatty() else None,
            ),
            dry_run=options.dry_run,
            state=state,
        )
        outcome = run(Engine(workplace, terms))
        return PASSED if outcome.ended_as_requested else _EXIT_CODES[outcome.decision]

    return run_in_session(
        run_in_workplace,
        place=place,
        teacher=options.model,
        students=(options.eval_model or [_STUDENT]) if students else [options.model],
        base_url=options.eval_base_url,
        arguments=[
            *(f"--upskill-param={parameter}" for parameter in options.param),
            *(["--upskill-dry-run"] if options.dry_run else []),
        ],
    )


def _dollars(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:  # noqa: PLR2004  also refuses inf and nan
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
