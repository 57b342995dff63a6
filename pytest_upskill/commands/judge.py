"""``pytest-upskill judge``: draw answers for a person to label, and compare a judge with them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pytest_upskill import LABELS_FILE
from pytest_upskill.cells.cell import Cell
from pytest_upskill.commands.command import PASSED, Command, CommandError, whole_number_type
from pytest_upskill.commands.judge_check import check_judge, read_labels_file
from pytest_upskill.commands.terminal import say
from pytest_upskill.formats.judge_labels import LabelsFile, write_labels
from pytest_upskill.grading.draw import STRATA, Drawing, draw
from pytest_upskill.report.document import ANSWER_LIMIT
from pytest_upskill.report.files.json import NAMED_BYTES, ReportError, read_report
from pytest_upskill.repository.project import project_folder
from pytest_upskill.sanitize.plural import counted
from pytest_upskill.stats import MIN_LABELS

_ANSWERS = 40


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="{draw,check}")
    drawing = actions.add_parser(
        "draw",
        help=f"write answers of a run to {LABELS_FILE}, for you to label",
        description=f"Write answers of a run to {LABELS_FILE}, for you to label.",
    )
    drawing.add_argument(
        "report", type=Path, metavar="REPORT.json", help="report that --upskill-json wrote"
    )
    drawing.add_argument(
        "--answers",
        type=whole_number_type(STRATA, 10_000),
        default=_ANSWERS,
        metavar="N",
        help="number of answers of each model (default: %(default)s)",
    )
    checking = actions.add_parser(
        "check",
        help="compare the judge with the labels; requests nothing unless --judge is given",
        description="Compare the judge with the labels; only --judge makes it send requests.",
    )
    checking.add_argument(
        "paths",
        nargs="*",
        type=Path,
        default=[Path()],
        metavar="PATH",
        help=f"a {LABELS_FILE}, or a folder to search for them (default: this folder)",
    )
    checking.add_argument(
        "--judge", metavar="MODEL", help="put the labelled answers to this judge instead"
    )
    checking.add_argument(
        "--cache", metavar="MODE", help="as --upskill-cache; replay sends no requests"
    )


def _run(options: argparse.Namespace) -> int:
    return _draw(options) if options.action == "draw" else check_judge(options)


COMMAND = Command(
    description="Check a judge: draw answers to label, and compare the judge with the labels.",
    add_arguments=_add_arguments,
    run=_run,
    epilog=(
        "examples:\n"
        "  pytest --upskill-models haiku --upskill-judge opus --upskill-json r.json\n"
        "  pytest-upskill judge draw r.json\n"
        "  pytest-upskill judge check\n"
    ),
)


def _draw(options: argparse.Namespace) -> int:
    try:
        report = read_report(options.report, NAMED_BYTES)
    except ReportError as error:
        raise CommandError(f"{options.report}: {error}") from None
    drawn = 0
    for path, cells in _group_by_case_file(report.cells).items():
        drawing = draw(
            [trial for cell in cells for trial in cell.trials],
            case_file=path.name,
            judge=cells[0].judge,
            answers=options.answers,
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            before=_previous_labels(path),
        )
        if drawing is not None:
            drawn += 1
            _report_drawing(_write_labels(path.parent, drawing), drawing, options.answers)
    if not drawn:
        raise CommandError(
            f"{options.report}: no run in it depended on a judge: run pytest with --upskill-judge"
        )
    return PASSED


def _group_by_case_file(cells: Sequence[Cell]) -> Mapping[Path, list[Cell]]:
    """Return the judged cells by the path of their case file."""
    found: dict[Path, list[Cell]] = {}
    for cell in cells:
        if cell.judge:
            found.setdefault(_case_file_of(cell), []).append(cell)
    return found


def _case_file_of(cell: Cell) -> Path:
    for path in (Path(cell.path), project_folder(Path.cwd()) / (cell.case_file or cell.path)):
        if path.is_file():
            return path
    raise CommandError(f"{cell.path}: no such file: start in the folder in which pytest ran")


def _previous_labels(case_file: Path) -> LabelsFile | None:
    """Return the labels of a case file, None if there are none."""
    file = read_labels_file(case_file.parent / LABELS_FILE)
    if file is not None and file.case_file != case_file.name:
        raise CommandError(
            f"{case_file.parent / LABELS_FILE}: has the labels of {file.case_file}: a folder can "
            "hold the labels of one case file only"
        )
    return file


def _write_labels(folder: Path, drawing: Drawing) -> Path:
    try:
        return write_labels(folder, drawing.file)
    except OSError as error:
        raise CommandError(f"{folder / LABELS_FILE}: {error.strerror}") from None


def _report_drawing(path: Path, drawing: Drawing, answers: int) -> None:
    count = len(drawing.file.answers)
    kept = f", {drawing.kept} of them labelled already" if drawing.kept else ""
    say(f"{path}: {counted(count, 'answer')} of {', '.join(drawing.file.models)}{kept}")
    say(*(f"  {line}" for line in drawing.dropped))
    if drawing.too_long:
        say(
            f"  {counted(drawing.too_long, 'judged answer')} cannot be drawn: longer than the "
            f"{ANSWER_LIMIT:,} characters that a report keeps"
        )
    sizes = [size for strata in drawing.file.cells.values() for size in strata.values()]
    few = answers // STRATA < min(MIN_LABELS, max(sizes))
    if few and drawing.kept < count:
        say(
            f"  too few to correct a lift, which takes {MIN_LABELS} of each stratum: "
            f"--answers {STRATA * MIN_LABELS}"
        )
    if drawing.kept < count:
        say('  set each "holds" to true or false without reading "key" at the end; then run')
        say("  pytest-upskill judge check")
