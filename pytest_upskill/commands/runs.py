"""``pytest-upskill runs``: the history of runs in the terminal, as CSV or as a page."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_upskill import STATE
from pytest_upskill.commands import command
from pytest_upskill.project.files import RUNS, project_folder
from pytest_upskill.report.history.page import write_history_html
from pytest_upskill.report.history.runs import History, read_history
from pytest_upskill.report.history.terminal import lines, write_csv


def add(parser: command.Parser) -> None:
    """Add the arguments of the command."""
    parser.epilog = "eval, benchmark, generate and pytest --upskill-log-runs add runs to it."
    parser.set_defaults(run=_run)
    parser.option("-d --dir", "DIR", "folder of the runs (default: .upskill/runs)", type=Path)
    parser.repeatable("-s --skill", "SKILL", "only this skill", dest="skills")
    parser.repeatable("-m --model --m", "MODEL", "only this model, by its label", dest="models")
    what = "what the bars show, pass rates (success) or tokens (default: %(default)s)"
    parser.option("--metric", None, what, choices=("success", "tokens"), default="success")
    what = "number of latest runs to show (default: %(default)s)"
    parser.option("--last", "N", what, type=command.whole_number_type(1), default=10)
    parser.option("--csv", "PATH", "write CSV to a file, or to the terminal", nargs="?", const="-")
    parser.option("--html", "PATH", "write one page with charts", type=Path)


def _run(options: argparse.Namespace) -> int:
    history = _select(_read_runs(options.dir), options.skills, options.models)
    if options.csv == "-":
        sys.stdout.write(write_csv(history))
    elif options.csv is not None:
        _write(Path(options.csv), write_csv(history))
    if options.html is not None:
        _write(options.html, write_history_html(history))
    if options.csv is None and options.html is None:
        unicode = (sys.stdout.encoding or "").lower().startswith("utf")
        command.say(*lines(history, options.metric, last=options.last, blocks=unicode))
    command.warn(*(f"not read: {problem}" for problem in history.unreadable))
    if history.partial:
        command.warn(f"{history.partial} not shown, as only some of the trials of the skill ran")
    return command.PASSED


def _read_runs(folder: Path | None) -> History:
    folder = folder or project_folder(Path.cwd()) / STATE / RUNS
    history = read_history(folder)
    if not history.series and not history.partial:
        problems = "".join(f"; {problem}" for problem in history.unreadable[:1])
        cure = "eval and pytest --upskill-log-runs write one; -d names another folder"
        raise command.CommandError(f"no runs in {folder}{problems}: {cure}")
    return history


def _select(history: History, skills: Sequence[str], models: Sequence[str]) -> History:
    """Return the history of the chosen skills and models.

    Raises:
        command.CommandError: There is no such skill or model in it.
    """
    for what, chosen in (("skill", skills), ("model", models)):
        known = {getattr(series.last.cell, what) for series in history.series}
        for name in chosen:
            if name not in known:
                names = ", ".join(sorted(known))
                raise command.CommandError(f"the history has no {what} {name!r}: it has {names}")
    kept = [
        series
        for series in history.series
        if (not skills or series.last.cell.skill in skills)
        and (not models or series.last.cell.model in models)
    ]
    if not kept and history.series:
        raise command.CommandError("no run has these skills on these models: leave out -s or -m")
    return replace(history, series=tuple(kept))


def _write(path: Path, text: str) -> None:
    command.write(path, text, 0o666)
    command.warn(f"written: {path}")
