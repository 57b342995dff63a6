"""``pytest-upskill generate``, ``cases`` and ``refine``: the commands that have a teacher."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pytest_upskill.answers.resources import Workplace
from pytest_upskill.commands import command
from pytest_upskill.commands.command import CommandError, Parser
from pytest_upskill.models import Model
from pytest_upskill.project.redaction import without_userinfo
from pytest_upskill.report.exit_code import NOT_MEASURED
from pytest_upskill.session.without_tests import run_in_session
from pytest_upskill.teacher.confirmation import QUERY_RUNS, RUNS
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.files import Consent
from pytest_upskill.teacher.improve import generate, propose_cases, refine
from pytest_upskill.teacher.outcome import DRY_RUN, NO_EVAL, CommandOutcome, Decision
from pytest_upskill.teacher.sources import read_sources
from pytest_upskill.teacher.versions import Settings

_EXIT_CODES: Mapping[Decision, int] = {
    "accepted": command.PASSED,
    "not shown": 1,
    "refused": command.UNUSABLE,
    "stopped": NOT_MEASURED,
}
"""Exit codes as of pytest: tests passed, failed, wrong usage, and not enough data to decide."""

_MAX_COUNT = 500
"""Most runs, steps or cases: the runs of one look must not reach the numbers of the next."""

_CASES, _QUERIES = 24, 20


_COUNTS = {
    "count": "number of cases to keep",
    "queries": "number of queries to keep, by which the description can be measured",
    "steps": "number of edited versions to try",
    "runs": "runs of each held-out case with each version",
}


def _add_teacher_arguments(parser: Parser, **counts: int) -> None:
    """Add the options of all commands that have a teacher.

    Args:
        parser: The command's parser.
        counts: The command's numbers of runs, steps or cases, with their defaults.
    """
    what = "the teacher, which writes (default: %(default)s)"
    parser.option("-m --model --m", "TEACHER", what, default="opus")
    what = f"a student, which the skill is for; repeatable (default: {command.STUDENT})"
    parser.repeatable("--eval-model", "STUDENT", what)
    what = "OpenAI-compatible server for students that name no host"
    parser.option("--eval-base-url", "URL", what)
    for name, whose in (("--param", "students"), ("--teacher-param", "teacher")):
        what = f"parameter of the requests to the {whose}, as in --upskill-param; repeatable"
        parser.repeatable(name, "KEY=VALUE", what)
    what = "a document, a trace of an agent, or a skill; repeatable"
    parser.repeatable("-f --from", "SOURCE", what, dest="sources", type=Path)
    what = "maximum cost in dollars (default: %(default)g)"
    parser.option("--max-cost", "USD", what, type=_dollars, default=5.0)
    what = "maximum number of answers; needed for remote models without a price"
    parser.option("--max-answers", "N", what, type=command.whole_number_type(1))
    parser.flag("-y --yes", "send the sources without asking, and answer no questions")
    parser.flag("--apply", "change the skill's folder without asking")
    parser.flag("--dry-run", "print the plan and its maximum cost, then stop")
    for name, default in counts.items():
        number = command.whole_number_type(0 if name == "queries" else 1, _MAX_COUNT)
        what = f"{_COUNTS[name]} (default: %(default)s)"
        parser.option(f"--{name}", "N", what, type=number, default=default)


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
        terminal = sys.stdin if sys.stdin.isatty() and sys.stderr.isatty() else None
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
        ended_as_requested = outcome.reason in {DRY_RUN, NO_EVAL}
        return command.PASSED if ended_as_requested else _EXIT_CODES[outcome.decision]

    url = options.eval_base_url
    chosen = options.eval_model or [command.STUDENT] if students else [options.model]
    arguments = [f"--upskill-models={command.with_generic_server(each, url)}" for each in chosen]
    arguments += [f"--upskill-param={parameter}" for parameter in options.param]
    arguments += ["--upskill-dry-run"] * options.dry_run
    arguments += [f"--upskill-base-url={url}"] if url else []
    return run_in_session(
        run_in_workplace,
        place,
        teacher=command.with_generic_server(options.model, None),
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


def add_generate(parser: Parser) -> None:
    """Add the arguments of ``generate``."""
    parser.epilog = (
        'examples:\n  pytest-upskill generate "write nvidia kernels" --from ./trace.md\n'
        '  pytest-upskill generate "handle errors too" --from ./skills/kernels/\n'
    )
    parser.set_defaults(run=_run_generate)
    what = "what the skill is for, or should learn"
    parser.add_argument("task", metavar="TASK", nargs="?", default="", help=what)
    _add_teacher_arguments(parser, count=_CASES, queries=_QUERIES, steps=3, runs=RUNS)
    parser.repeatable("-e --example", "TEXT", "an example of input and output; repeatable")
    what = "folder of the skill (default: skills/NAME; with --from SKILL, that skill)"
    parser.option("-o --output", "FOLDER", what, type=Path)
    parser.flag("--no-eval", "write only the skill: no cases, no measurement")


def _run_generate(options: argparse.Namespace) -> int:
    skills = [
        source
        for source in options.sources
        if source.name == "SKILL.md" or (source / "SKILL.md").is_file()
    ]
    task = options.task.strip()
    if not task and not options.sources:
        raise CommandError("the task is empty: say what the skill is for")
    if len(skills) > 1:
        raise CommandError(f"--from: {skills[0]} and {skills[1]} are both skills: name one")
    task += "".join(f"\n\nFor example: {example}" for example in options.example)
    if skills and not options.no_eval:
        return _improve(options, skills[0], task=task, queries=0)
    task = task or "do what the sources show"

    def run(engine: Engine) -> CommandOutcome:
        return generate(engine, _settings(options, options.sources, task=task))

    return _run_in_session(run, options, Path(), students=not options.no_eval)


def _settings(options: argparse.Namespace, sources: Sequence[Path], **more: Any) -> Settings:
    """Return the settings that the options give, or others instead."""
    given = {"task": "", **vars(options), **more, "sources": read_sources(sources)}
    names = [field.name for field in fields(Settings) if field.name in given]
    return Settings(**{name: given[name] for name in names})


def add_cases(parser: Parser) -> None:
    """Add the arguments of ``cases``."""
    parser.epilog = "Example: pytest-upskill cases ./skills/csv --from ./docs/csv.md --model opus"
    parser.set_defaults(run=_run_cases)
    parser.add_argument("skill", metavar="SKILL", type=Path, help="folder with a SKILL.md")
    _add_teacher_arguments(parser, count=_CASES, queries=_QUERIES)
    parser.flag("--harden", "take the statements for a judge in the skill's cases as sources")


def _run_cases(options: argparse.Namespace) -> int:
    folder = command.folder_of_skill(options.skill).absolute()
    sources = list(options.sources)
    if options.harden:
        found, _ = command.own_cases(folder)
        cases = ((each.case_file / case.file, case) for each in found for case in each.cases)
        judged = dict.fromkeys(file for file, case in cases if case.judge_checks)
        if not judged:
            raise CommandError(f"--harden: no case of {folder.name} has statements for a judge")
        sources += judged

    def run(engine: Engine) -> CommandOutcome:
        skill = command.load_skill(folder, engine.workplace.extensions)
        return propose_cases(engine, skill, _settings(options, sources))

    return _run_in_session(run, options, folder)


def add_refine(parser: Parser) -> None:
    """Add the arguments of ``refine``."""
    parser.epilog = "Example: pytest-upskill refine ./skills/csv --model opus --eval-model haiku"
    parser.set_defaults(run=_run_refine)
    parser.add_argument("skill", metavar="SKILL", type=Path, help="folder with a SKILL.md")
    _add_teacher_arguments(parser, steps=4)
    what = f"{_COUNTS['runs']} (default: {RUNS}; {QUERY_RUNS} with --description)"
    parser.option("--runs", "N", what, type=command.whole_number_type(1, _MAX_COUNT))
    what = "improve only the description, by which queries choose the skill"
    parser.flag("--description", what)


def _run_refine(options: argparse.Namespace) -> int:
    runs = options.runs or (QUERY_RUNS if options.description else RUNS)
    return _improve(options, options.skill, runs=runs)


def _improve(options: argparse.Namespace, skill: Path, **more: Any) -> int:
    """Improve a skill; the other sources are those of its new version."""
    folder = command.folder_of_skill(skill).absolute()
    sources = [source for source in options.sources if source != skill]

    def run(engine: Engine) -> CommandOutcome:
        read = command.load_skill(folder, engine.workplace.extensions)
        return refine(engine, read, _settings(options, sources, **more))

    return _run_in_session(run, options, folder)
