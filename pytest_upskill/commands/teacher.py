"""``pytest-upskill generate``, ``cases`` and ``refine``: the commands that have a teacher."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_upskill.answers.resources import Workplace
from pytest_upskill.commands.command import (
    PASSED,
    STUDENT,
    UNUSABLE,
    CommandError,
    folder_of_skill,
    load_skill,
    repeatable,
    whole_number_type,
    with_generic_server,
)
from pytest_upskill.figures.gate import NOT_MEASURED
from pytest_upskill.models import Model
from pytest_upskill.project.redaction import without_userinfo
from pytest_upskill.session.without_tests import run_in_session
from pytest_upskill.teacher.confirmation import QUERY_RUNS, RUNS
from pytest_upskill.teacher.consent import Consent
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.improve import generate, propose_cases, refine
from pytest_upskill.teacher.outcome import CommandOutcome, Decision
from pytest_upskill.teacher.sources import read_sources
from pytest_upskill.teacher.versions import Settings

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


def _add_teacher_arguments(
    parser: argparse.ArgumentParser, counts: Mapping[str, tuple[int, str]]
) -> None:
    """Add the options of all commands that have a teacher, and numbers of runs, steps or cases.

    Args:
        parser: The command's parser.
        counts: Default and help of each number, by the name of its option.
    """
    parser.add_argument(
        *("-m", "--model", "--m"),
        default=_TEACHER,
        metavar="TEACHER",
        help="the teacher, which writes (default: %(default)s)",
    )
    repeatable(
        *(parser, "--eval-model"),
        metavar="STUDENT",
        help=f"a student, which the skill is for; repeatable (default: {STUDENT})",
    )
    parser.add_argument(
        "--eval-base-url",
        metavar="URL",
        help="OpenAI-compatible server for students that name no host",
    )
    for option, whose in (("--param", "students"), ("--teacher-param", "teacher")):
        repeatable(
            *(parser, option),
            metavar="KEY=VALUE",
            help=f"parameter of the requests to the {whose}, as in --upskill-param; repeatable",
        )
    repeatable(
        *(parser, "-f", "--from"),
        dest="sources",
        type=Path,
        metavar="SOURCE",
        help="a document, a trace of an agent, or a skill; repeatable",
    )
    parser.add_argument(
        "--max-cost",
        type=_dollars,
        default=5.0,
        metavar="USD",
        help="maximum cost in dollars (default: %(default)g)",
    )
    parser.add_argument(
        "--max-answers",
        type=whole_number_type(1),
        metavar="N",
        help="maximum number of answers; needed for remote models without a price",
    )
    for flags, what in (
        (
            ("-y", "--yes"),
            "send the sources without asking, and answer no questions",
        ),
        (("--apply",), "change the skill's folder without asking"),
        (("--dry-run",), "print the plan and its maximum cost, then stop"),
    ):
        parser.add_argument(*flags, action="store_true", help=what)
    for option, (default, meaning) in counts.items():
        parser.add_argument(
            option,
            type=whole_number_type(0 if option == "--queries" else 1, _MAX_COUNT),
            default=default,
            metavar="N",
            help=f"{meaning} (default: %(default)s)" if default else meaning,
        )


def _run_in_session(
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
        at_terminal = sys.stdin.isatty() and sys.stderr.isatty()
        terminal = sys.stdin if at_terminal else None
        engine = Engine(
            workplace=workplace,
            state=state,
            teacher=teacher,
            students=models if students else (),
            consent=Consent(yes=options.yes, apply=options.apply, terminal=terminal),
            max_cost=options.max_cost,
            max_answers=options.max_answers,
            dry_run=options.dry_run,
            typed=without_userinfo(options.typed),
        )
        outcome = run(engine)
        return PASSED if outcome.ended_as_requested else _EXIT_CODES[outcome.decision]

    url = options.eval_base_url
    chosen = options.eval_model or [STUDENT] if students else [options.model]
    arguments = [
        *(f"--upskill-models={with_generic_server(each, url)}" for each in chosen),
        *(f"--upskill-param={parameter}" for parameter in options.param),
        *(["--upskill-dry-run"] if options.dry_run else []),
        *([f"--upskill-base-url={url}"] if url else []),
    ]
    return run_in_session(
        run_in_workplace,
        place,
        teacher=with_generic_server(options.model, None),
        parameters=options.teacher_param,
        arguments=arguments,
    )


def _dollars(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:  # noqa: PLR2004  also refuses inf and nan
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


_GENERATE_COUNTS = {
    "--count": (24, "number of cases to keep"),
    "--queries": (20, "number of queries to keep, by which the description can be measured"),
    "--steps": (3, "number of edited versions to try"),
    "--runs": (RUNS, "runs of each held-out case with and without the skill"),
}


def add_generate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``generate``."""
    parser.epilog = (
        'examples:\n  pytest-upskill generate "write nvidia kernels" --from ./trace.md\n'
        '  pytest-upskill generate "handle errors too" --from ./skills/kernels/\n'
    )
    parser.set_defaults(run=_run_generate)
    parser.add_argument(
        "task", metavar="TASK", nargs="?", default="", help="what the skill is for, or should learn"
    )
    _add_teacher_arguments(parser, _GENERATE_COUNTS)
    repeatable(
        *(parser, "-e", "--example"),
        metavar="TEXT",
        help="an example of input and output; repeatable",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="folder of the skill (default: skills/NAME; with --from SKILL, that skill)",
    )
    parser.add_argument(
        "--no-eval",
        action="store_true",
        help="write only the skill: no cases, no measurement",
    )


def _run_generate(options: argparse.Namespace) -> int:
    skills = [source for source in options.sources if (_folder(source) / "SKILL.md").is_file()]
    task = options.task.strip()
    if not task and not options.sources:
        raise CommandError("the task is empty: say what the skill is for")
    if len(skills) > 1:
        raise CommandError(
            f"--from: {skills[0]} and {skills[1]} are skills: name the one to improve, and copies "
            "of the others' files as documents"
        )
    task += "".join(f"\n\nFor example: {example}" for example in options.example)
    if skills and not options.no_eval:
        return _improve(options, skills[0], task=task, queries=0)
    task = task or "do what the sources show"

    def generate_with(engine: Engine) -> CommandOutcome:
        return generate(engine, _settings(options, task, options.sources))

    return _run_in_session(generate_with, options, Path(), students=not options.no_eval)


def _settings(
    options: argparse.Namespace, task: str, sources: Sequence[Path], **more: Any
) -> Settings:
    """Return the settings that the options give, or others instead."""
    given = {**vars(options), **more}
    names = {"count", "queries", "steps", "runs", "output", "description"} & given.keys()
    chosen = {name: given[name] for name in names}
    return Settings(task=task, sources=read_sources(sources), **chosen)


def _folder(source: Path) -> Path:
    return source.parent if source.name == "SKILL.md" else source


def add_cases(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``cases``."""
    parser.epilog = "Example: pytest-upskill cases ./skills/csv --from ./docs/csv.md --model opus"
    parser.set_defaults(run=_run_cases)
    parser.add_argument("skill", metavar="SKILL", type=Path, help="folder with a SKILL.md")
    counts = {name: _GENERATE_COUNTS[name] for name in ("--count", "--queries")}
    _add_teacher_arguments(parser, counts)


def _run_cases(options: argparse.Namespace) -> int:
    folder = folder_of_skill(options.skill).absolute()

    def propose_with(engine: Engine) -> CommandOutcome:
        skill = load_skill(folder, engine.workplace.extensions)
        return propose_cases(engine, skill, _settings(options, "", options.sources))

    return _run_in_session(propose_with, options, folder)


_REFINE_COUNTS = {
    "--steps": (4, "number of candidates to try"),
    "--runs": (0, f"runs of each held-out case ({RUNS}) or query ({QUERY_RUNS}) with each version"),
}


def add_refine(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``refine``."""
    parser.epilog = "Example: pytest-upskill refine ./skills/csv --model opus --eval-model haiku"
    parser.set_defaults(run=_run_refine)
    parser.add_argument("skill", metavar="SKILL", type=Path, help="folder with a SKILL.md")
    _add_teacher_arguments(parser, _REFINE_COUNTS)
    parser.add_argument(
        "--description",
        action="store_true",
        help="improve only the description, by which queries choose the skill",
    )


def _run_refine(options: argparse.Namespace) -> int:
    runs = options.runs or (QUERY_RUNS if options.description else RUNS)
    return _improve(options, options.skill, runs=runs)


def _improve(options: argparse.Namespace, skill: Path, *, task: str = "", **more: Any) -> int:
    """Improve a skill; the other sources are those of its new version."""
    folder = folder_of_skill(skill).absolute()
    sources = [source for source in options.sources if source != skill]

    def refine_with(engine: Engine) -> CommandOutcome:
        read = load_skill(folder, engine.workplace.extensions)
        return refine(engine, read, _settings(options, task, sources, **more))

    return _run_in_session(refine_with, options, folder)
