"""``pytest-upskill eval`` and ``benchmark``: run skills by the equivalent pytest command."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from pytest_upskill.cases.discovery import CaseDiscovery
from pytest_upskill.commands import command
from pytest_upskill.project.redaction import without_credentials
from pytest_upskill.session.without_tests import settings_at


def add(parser: command.Parser, *, runs: int = 1) -> None:
    """Add the arguments of the command.

    Args:
        parser: Its parser.
        runs: Default of ``--runs``.
    """
    parser.epilog = "Arguments after -- go to pytest, as in: -- --upskill-max-cost 2 -k json"
    parser.set_defaults(run=_run, passed_on=[])
    parser.add_argument("skills", nargs="+", metavar="SKILL", help="folder with a SKILL.md")
    what = "model to run on; repeatable (default: ini upskill_models, else haiku)"
    parser.repeatable("-m --model --m", "MODEL", what, dest="models")
    parser.option("--base-url", "URL", "OpenAI-compatible server for models that name no host")
    what = "runs of each case in each arm (default: %(default)s)"
    parser.option("--runs", "N", what, type=command.whole_number_type(1), default=runs)
    parser.option("-t --tests", "FILE", "case file of the skill, instead of all its cases")
    parser.flag("--no-baseline", "run only with the skill; no lift and no gate")
    what = "folder of the history (default: ini upskill_runs_dir, else .upskill/runs)"
    parser.option("--runs-dir -o --output", "DIR", what)
    log = argparse.BooleanOptionalAction
    parser.add_argument("--log-runs", action=log, default=True, help="add the run to the history")
    parser.flag("-v --verbose", "show every case")


def add_benchmark(parser: command.Parser) -> None:
    """Add the arguments of ``benchmark``, which runs each case more often."""
    add(parser, runs=3)


def pytest_arguments(options: argparse.Namespace) -> list[str]:
    """Return the arguments of the equivalent ``pytest`` command.

    Args:
        options: Values of the arguments.

    Raises:
        command.CommandError: ``--tests`` is given, and there is no such file, or not one skill.
    """
    values = {
        "models": ",".join(options.models),
        "base-url": options.base_url,
        "runs": str(options.runs) if options.runs > 1 else "",
    }
    given = ((f"--upskill-{name}", value) for name, value in values.items() if value)
    arguments = [word for words in given for word in words]
    if not options.log_runs:
        arguments += ["-o", "upskill_runs_dir="]
    elif options.runs_dir:
        # A relative folder in an ini key is relative to pytest's rootdir.
        arguments += ["-o", f"upskill_runs_dir={Path(options.runs_dir).absolute()}"]
    else:
        arguments.append("--upskill-log-runs")
    if options.no_baseline:
        arguments += ["-m", "upskill(arm='with_skill')"]
    if options.verbose:
        arguments.append("-v")
    return [*arguments, *options.passed_on, *_path_arguments(options.skills, options.tests)]


def _run(options: argparse.Namespace) -> NoReturn:
    """Print the ``pytest`` command and replace this process by it, with its exit code."""
    root, ini, models = settings_at(Path(options.skills[0]))
    chosen = any(each.startswith("--upskill-models") for each in options.passed_on)
    is_default = not (options.models or models or chosen)
    if is_default:
        options.models = [command.STUDENT]
    options.models = [
        command.with_generic_server(each, options.base_url) for each in options.models
    ]
    if options.tests and not Path(options.tests).absolute().is_relative_to(root):
        # By the place of this file alone, pytest would take another project's settings.
        options.passed_on += ["--rootdir", str(root), *(["-c", str(ini)] if ini else [])]
    arguments = pytest_arguments(options)
    shown = shlex.join(["pytest", *map(without_credentials, arguments)])
    command.say(f"$ {shown}")
    if is_default:
        command.say(f"no model is named, so {command.STUDENT} runs: -m offline costs nothing")
    sys.stdout.flush()
    words = [sys.executable, "-P", "-m", "pytest", *arguments]
    os.execv(words[0], words)  # noqa: S606 - the arguments are the user's own


def _path_arguments(skills: Sequence[str], tests: str | None) -> list[str]:
    """Return the paths to give to pytest: the skills, or the case file of the only skill."""
    if tests is None:
        for each in skills:
            command.check_exists(Path(each.partition("::")[0]))
        return list(skills)
    if len(skills) != 1:
        raise command.CommandError("--tests: takes one skill at a time: name one")
    file, skill = Path(tests).absolute(), Path(skills[0]).absolute()
    for path, cure in ((file, "a file with cases"), (skill / "SKILL.md", "a folder with one")):
        if not path.is_file():
            problem = f"no file {path.name} in {path.parent}"
            raise command.CommandError(f"--tests: {problem}: name {cure}")
    if CaseDiscovery().owning_skill(file) == skill:
        return [tests]
    return ["-o", f"upskill_case_files={shlex.quote(f'{file}={skill}')}", tests]
