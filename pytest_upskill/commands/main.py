"""Dispatch of ``pytest-upskill COMMAND``, and the table of its commands."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pkgutil import resolve_name

from pytest_upskill.commands.command import (
    INTERRUPTED,
    PASSED,
    PROGRAM,
    UNUSABLE,
    Command,
    CommandError,
    Parser,
    warn,
)
from pytest_upskill.project.messages import closest

COMMANDS: Mapping[str, str] = {
    "init": "write a first case file for a skill, without a model",
    "eval": "run the cases of skills: print the pytest command and run it",
    "benchmark": "compare models on skills: eval with 3 runs of each case",
    "generate": "write a skill and its cases, and measure it",
    "cases": "propose cases for a skill, and keep those that prove sound",
    "refine": "search for a better version of a skill, and prove that it is better",
    "runs": "show the lift of each skill on each model, run after run",
    "list": "list skills, with their cases and latest verdicts",
    "judge": "draw answers, label them, and check a judge against the labels",
    "report": "merge JSON reports of several runs and decide their gates",
}
"""Commands with their help; each is the ``COMMAND`` of the module with its name in this folder."""

_TOGETHER: Mapping[str, str] = {
    "benchmark": "eval:BENCHMARK",
    "generate": "teacher:GENERATE",
    "cases": "teacher:CASES",
    "refine": "teacher:REFINE",
}
"""Commands that share a module."""


_DASHES = re.compile(r"^[\u2013\u2014]-?(?=[a-z])")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names; return its exit code.

    Args:
        arguments: Arguments after the program's name; None reads ``sys.argv``.
    """
    name, *rest = (sys.argv[1:] if arguments is None else list(arguments)) or [""]
    try:
        if name not in COMMANDS:
            return _handle_no_command(name)
        command = load(name)
        return command.run(parse(name, command, rest))
    except CommandError as error:
        warn(f"ERROR: {error}")
        return UNUSABLE
    except KeyboardInterrupt:
        warn("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as head, is gone; keep Python from a second error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASSED
    except OSError as error:
        if error.filename is None:
            raise
        warn(f"ERROR: {error.filename}: {error.strerror}")
        return UNUSABLE


def load(name: str) -> Command:
    """Import a command's module and return the command."""
    command: Command = resolve_name(f"{__package__}.{_TOGETHER.get(name, f'{name}:COMMAND')}")
    return command


def make_parser(name: str, command: Command) -> Parser:
    """Return the parser of a command's arguments."""
    parser = Parser(
        prog=f"{PROGRAM} {name}",
        description=command.description,
        epilog=command.epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.passes_on = command.passes_on
    command.add_arguments(parser)
    return parser


def parse(name: str, command: Command, arguments: Sequence[str]) -> argparse.Namespace:
    """Return the values of a command's arguments, and as ``passed_on`` what follows ``--``.

    Raises:
        CommandError: The arguments are invalid.
    """
    # A text that was copied from a page may have typographic dashes: —-from.
    own, passed_on = [_DASHES.sub("--", each) for each in arguments], []
    if command.passes_on and "--" in own:
        at = own.index("--")
        own, passed_on = own[:at], own[at + 1 :]
    options = make_parser(name, command).parse_args(own)
    options.passed_on = passed_on
    return options


def _handle_no_command(name: str) -> int:
    """Handle what comes instead of a command: nothing, ``--help``, ``--version``, or a typo."""
    if name == "--version":
        sys.stdout.write(f"{PROGRAM} {version('pytest-upskill')}\n")
        return PASSED
    if name in {"-h", "--help"}:
        sys.stdout.write(_help_text())
        return PASSED
    if not name:
        sys.stderr.write(_help_text())
        return UNUSABLE
    close = closest(name, COMMANDS)
    hint = f"did you mean {close!r}?" if close else f"write one of {', '.join(COMMANDS)}"
    raise CommandError(f"no such command {name!r}: {hint}")


def _help_text() -> str:
    width = max(map(len, COMMANDS))
    commands = "".join(f"  {name:{width}}  {text}\n" for name, text in COMMANDS.items())
    return (
        f"usage: {PROGRAM} COMMAND ...\n\n"
        "pytest for agent skills. The tests are run by\n"
        "pytest --upskill-models MODEL SKILLS; this command does everything around them.\n\n"
        f"commands:\n{commands}\n"
        f"{PROGRAM} COMMAND --help shows the options of a command.\n"
    )
