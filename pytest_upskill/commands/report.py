"""``pytest-upskill report``: merge the reports of several jobs, and decide the gates."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from pytest_upskill import STATE
from pytest_upskill.commands.command import PASSED, CommandError, Parser, say
from pytest_upskill.figures.baseline import BaselineError, read_baselines
from pytest_upskill.figures.cell import Cell, with_places
from pytest_upskill.figures.gate import FAIL_ON, Thresholds, decide_gates
from pytest_upskill.project.files import BASELINES, project_folder
from pytest_upskill.report.document import Report, Session
from pytest_upskill.report.exit_code import EXIT_CODES, outcome
from pytest_upskill.report.files.json import NAMED_BYTES, SCHEMA, ReportError, read_report
from pytest_upskill.report.files.phrases import failed_case_lines, headline
from pytest_upskill.report.files.write import REPORTS, write, write_for_github
from pytest_upskill.report.notes import all_notes
from pytest_upskill.report.terminal import LEGEND, TRIGGER_LEGEND, table


def add(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.epilog = "Gates are decided by the thresholds of the runs."
    parser.set_defaults(run=_run)
    what = "report that --upskill-json wrote"
    parser.add_argument("files", nargs="*", metavar="REPORT.json", help=what)
    for kind in REPORTS:
        parser.option(f"--{kind}", "PATH", f"write the merged report, as --upskill-{kind}")
    parser.flag("--schema", "instead, print the JSON Schema of a report")


def _run(options: argparse.Namespace) -> int:
    """Merge and write the reports; return the exit code that one run of all trials would have."""
    try:
        if options.schema:
            sys.stdout.write(SCHEMA.read_text("utf-8"))
            return PASSED
        merged = _merge_files(options)
        for kind in REPORTS:
            if file := getattr(options, kind):
                write(merged, kind, Path(file))
    except (ReportError, BaselineError) as error:
        raise CommandError(str(error)) from None
    say(*_report_lines(merged), *write_for_github(merged, os.environ))
    return EXIT_CODES[outcome(merged)]


def _merge_files(options: argparse.Namespace) -> Report:
    if not options.files:
        raise ReportError("no report: name the files that --upskill-json wrote")
    files = {Path(file).resolve(): file for file in options.files}  # each once
    reports = {file: read_report(Path(file), NAMED_BYTES) for file in files.values()}
    if len(reports) == 1:
        return next(iter(reports.values()))
    sessions = [session for report in reports.values() for session in report.sessions]
    cells = _cells(reports)
    baselines = None
    if any(session.options.get("compare") == "baseline" for session in sessions):
        folder = project_folder(Path.cwd()) / STATE / BASELINES
        baselines = read_baselines(folder, {cell.model for cell in cells})
    gates = decide_gates(cells, _thresholds(sessions), baselines)
    return Report(sessions=tuple(sessions), gates=tuple(gates))


def _cells(reports: Mapping[str, Report]) -> list[Cell]:
    """Return the cells of all reports, by the name of their file, in the order of a session.

    Raises:
        ReportError: Two reports have the same cell.
    """
    found: dict[tuple[bool, str, str], tuple[str, Cell]] = {}
    for file, report in reports.items():
        for cell in (gate.cell for gate in report.gates):
            other, _ = found.setdefault((cell.chooses, cell.path, cell.model), (file, cell))
            if other != file:
                raise ReportError(f"{cell.name} is in {other} and in {file}: leave one out")
    models = list(dict.fromkeys(model for *_, model in found))
    in_order = sorted(found, key=lambda key: (*key[:2], models.index(key[2])))
    return with_places(found[key][1] for key in in_order)


def _thresholds(sessions: Sequence[Session]) -> Thresholds:
    """Return the thresholds of the sessions.

    Raises:
        ReportError: They are not the same in all sessions.
    """
    limits: dict[str, float | None] = {}
    for name in ("compare", *(limit.name for limit in fields(Thresholds))):
        value = sessions[0].options.get(name)
        if any(session.options.get(name) != value for session in sessions):
            option = f"--upskill-{name.replace('_', '-')}"
            raise ReportError(f"{option} differs between the runs: run them with the same")
        # Other tools write 1.0 as 1.
        limits[name] = float(value) if isinstance(value, (int, float)) else None
    del limits["fail_on"], limits["compare"]
    words = sessions[0].options.get("fail_on")
    fail_on = frozenset(word for word in FAIL_ON if isinstance(words, list) and word in words)
    return Thresholds(fail_on=fail_on, **limits)


def _report_lines(report: Report) -> Iterator[str]:
    """Yield the lines to print about the merged report."""
    yield headline(report)
    width = shutil.get_terminal_size().columns
    for gates, legend in ((report.lifts, LEGEND), (report.triggers, TRIGGER_LEGEND)):
        if gates:
            yield from (line for line, _ in table(gates, width, cases=False))
            yield legend
    yield from all_notes(report)
    yield from failed_case_lines(report)
    for gate in report.failed_gates:
        yield from f"FAILED {gate.nodeid} - {gate.report}".splitlines()
