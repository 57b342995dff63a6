"""Dispatch of ``pytest-upskill COMMAND``, and the table of its commands."""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pkgutil import resolve_name

from pytest_upskill.commands import command

COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("init:add", "write a first case file for a skill, without a model"),
    "eval": ("eval:add", "run the cases of skills: print the pytest command and run it"),
    "benchmark": ("eval:add_benchmark", "compare models on skills: eval with 3 runs of each case"),
    "generate": ("teacher:add_generate", "write a skill and its cases, and measure it"),
    "cases": ("teacher:add_cases", "propose cases for a skill, and keep those that prove sound"),
    "refine": (
        "teacher:add_refine",
        "search for a better version of a skill, and prove that it is better",
    ),
    "runs": ("runs:add", "show the lift of each skill on each model, run after run"),
    "list": ("list:add", "list skills, with their cases and what these need"),
    "judge": ("judge:add", "draw answers, label them, and check a judge against the labels"),
    "report": ("report:add", "merge JSON reports of several runs and decide their gates"),
}
"""Commands, each with its help and the function of this folder that adds its arguments.

The function also sets ``run``, a function that does the work and returns the exit code.
"""

_DASHES = re.compile(r"^[\u2013\u2014]-?(?=[a-z])")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names; return its exit code.

    Args:
        arguments: Arguments after the program's name; None reads ``sys.argv``.
    """
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        code: int = options.run(options)
    except command.CommandError as error:
        command.warn(f"ERROR: {error}")
        return command.UNUSABLE
    except KeyboardInterrupt:
        command.warn("interrupted")
        return command.INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as head, is gone; keep Python from a second error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return command.PASSED
    except OSError as error:
        if error.filename is None:
            raise
        command.warn(f"ERROR: {error.filename}: {error.strerror}")
        return command.UNUSABLE
    return code


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the values of a command's arguments.

    Besides, ``passed_on`` is what follows ``--``, and ``typed`` the whole command.

    Raises:
        command.CommandError: The arguments are invalid.
    """
    # A text that was copied from a page may have typographic dashes: —-from.
    own, passed_on = [_DASHES.sub("--", each) for each in arguments], []
    if "--" in own:
        at = own.index("--")
        own, passed_on = own[:at], own[at + 1 :]
    parser = command.Parser(
        prog=command.PROGRAM,
        description="pytest for agent skills. The tests are run by pytest --upskill-models MODEL "
        "SKILLS; this command does everything around them.",
    )
    parser.add_argument(
        "--version", action="version", version=f"{command.PROGRAM} {version('pytest-upskill')}"
    )
    named = own[:1]
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (add, text) in COMMANDS.items():
        chosen = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in named:  # the others need not be imported
            resolve_name(f"{__package__}.{add}")(chosen)
            parser, own = chosen, own[1:]
    options = parser.parse_args(own)
    if passed_on and "passed_on" not in options:
        raise command.CommandError("only eval and benchmark pass on what follows --: leave it out")
    options.passed_on = passed_on
    options.typed = shlex.join([command.PROGRAM, *arguments])
    return options
