"""``pytest-upskill judge``: draw answers for a person to label, and compare a judge with them."""

import argparse
import sys
import termios
import tty
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from pytest_upskill import LABELS_FILE
from pytest_upskill.cases import judge_labels
from pytest_upskill.cases.judge_labels import LabelArm, LabelledAnswer, LabelsFile
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.commands import command
from pytest_upskill.commands.command import CommandError, Parser, say
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.wording import judge_accuracy
from pytest_upskill.grading.labels import draw
from pytest_upskill.project.files import project_folder
from pytest_upskill.project.messages import counted
from pytest_upskill.report.files.json import NAMED_BYTES, ReportError, read_report
from pytest_upskill.stats import calibration

_ANSWERS = len(calibration.STRATA) * calibration.MIN_LABELS
"""Fewer labels could correct no lift."""

FAILED = 1
"""Exit code if labels are too few."""


def add(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.epilog = (
        "examples:\n"
        "  pytest --upskill-models haiku --upskill-judge opus --upskill-json r.json\n"
        "  pytest-upskill judge draw r.json\n"
        "  pytest-upskill judge label\n"
        "  pytest-upskill judge check\n"
    )
    actions = parser.add_subparsers(required=True, metavar="{draw,label,check}")
    for name, run, what in (
        ("draw", _draw, f"write answers of a run to {LABELS_FILE}, for you to label"),
        ("label", _label, "label the drawn answers, one at a time; q saves and quits"),
        ("check", _check, "compare the judge with the labels, without requests"),
    ):
        action = actions.add_parser(name, help=what, description=f"{what.capitalize()}.")
        action.set_defaults(run=run)
        if run is _draw:
            report = "report that --upskill-json wrote"
            action.add_argument("report", type=Path, metavar="REPORT.json", help=report)
            answers = "number of answers of each model (default: %(default)s)"
            count = command.whole_number_type(_ANSWERS, 10_000)
            action.option("--answers", "N", answers, type=count, default=_ANSWERS)
        else:
            where = f"a {LABELS_FILE}, or a folder to search for them (default: this folder)"
            paths: dict[str, Any] = {"nargs": "*", "type": Path, "default": [Path()]}
            action.add_argument("paths", **paths, metavar="PATH", help=where)


def _draw(options: argparse.Namespace) -> int:
    try:
        report = read_report(options.report, NAMED_BYTES)
    except ReportError as error:
        raise CommandError(str(error)) from None
    drawn = 0
    judged = _judged_cells(gate.cell for gate in report.lifts)
    for path, cells in judged.items():
        file = draw(
            [trial for cell in cells for trial in cell.trials],
            case_file=path.name,
            judge=cells[0].judge,
            answers=options.answers,
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            before=_previous_labels(path),
        )
        if file is not None:
            drawn += 1
            models, answers = ", ".join(file.models), counted(len(file.answers), "answer")
            place = judge_labels.write_labels(judge_labels.folder_of_labels(path), file)
            kept = f", {file.labelled} of them labelled already" if file.labelled else ""
            say(f"{place}: {answers} of {models}{kept}")
    if not drawn:
        asked = "its judge decided none, so name another by --upskill-judge"
        cure = asked if judged else "run pytest with --upskill-judge"
        raise CommandError(f"{options.report}: no answer in it that a judge decided: {cure}")
    say("label them with: pytest-upskill judge label")
    return command.PASSED


def _judged_cells(cells: Iterable[Cell]) -> Mapping[Path, list[Cell]]:
    """Return the judged cells by the path of their case file."""
    found: dict[Path, list[Cell]] = {}
    for cell in filter(lambda each: each.judge, cells):
        places = Path(cell.path), project_folder(Path.cwd()) / (cell.case_file or cell.path)
        path = next(filter(Path.exists, places), None)
        if path is None:
            raise CommandError(f"{cell.path}: no such file: start in the folder of the pytest run")
        found.setdefault(path, []).append(cell)
    return found


def _previous_labels(case_file: Path) -> LabelsFile | None:
    """Return the labels of a case file, None if there are none."""
    place = judge_labels.folder_of_labels(case_file) / LABELS_FILE
    file = _read_labels_file(place)
    if file is not None and file.case_file != case_file.name:
        raise CommandError(f"{place}: has labels of {file.case_file}: give each its own folder")
    return file


def _label(options: argparse.Namespace) -> int:
    """Have a person label the answers of every labels file; return the exit code."""
    if not (files := _labels_files(options.paths)):
        raise CommandError(f"no {LABELS_FILE} here: draw answers with pytest-upskill judge draw")
    with key_presses() as next_key:
        for path, file in files.items():
            if not label_answers(file, path, next_key):
                break
    return command.PASSED


def _check(options: argparse.Namespace) -> int:
    """Compare the judge with every labels file; return the exit code."""
    if not (files := _labels_files(options.paths)):
        # Not an error: a workflow may check a judge before anybody has labelled an answer.
        say(f"no {LABELS_FILE} in {', '.join(map(str, options.paths))}: nothing to compare")
    too_few = [_report_agreement(path, file) for path, file in files.items()]
    return FAILED if any(too_few) else command.PASSED


def _labels_files(paths: Sequence[Path]) -> dict[Path, LabelsFile]:
    """Read labels files, and those in folders."""
    found: dict[Path, LabelsFile] = {}
    for path in paths:
        for file in sorted(path.rglob(LABELS_FILE)) if path.is_dir() else [path]:
            labels = _read_labels_file(file) if file.name == LABELS_FILE else None
            if labels is None:
                raise CommandError(f"{path}: neither a folder nor a {LABELS_FILE}")
            found[file] = labels
    return found


def _report_agreement(path: Path, file: LabelsFile) -> list[str]:
    """Print how the judge agrees with a labels file, and return which labels are too few."""
    say(
        f"{path}: {counted(len(file.answers), 'answer')}, {file.labelled} labelled, "
        f"drawn {file.drawn} for {file.judge}"
    )
    too_few, agreement = list[str](), list[str]()
    for model, arm in product(file.cells, judge_labels.ARMS):
        strata = [_stratum(file, model, arm, judged=judged) for judged in (True, False)]
        for (size, labels), passed in zip(strata, ("passed", "did not pass"), strict=True):
            have, need = len(labels), calibration.labels_needed(size)
            if have < need:
                answers = f"answers {arm} the skill that the judge {passed}"
                too_few.append(f"{model}: {have} of {need} labels of {answers}")
        if count := sum(len(labels) for _, labels in strata):
            accuracy = judge_accuracy(calibration.agreement(*strata))
            agreement.append(f"{model} {arm} the skill: {accuracy} ({counted(count, 'label')})")
    say(*(f"  {line}" for line in [*too_few, *agreement, *_disagreements(file)]))
    return too_few


def _disagreements(file: LabelsFile) -> Iterator[str]:
    """Yield the statements about which judge and labels differ, the most frequent first."""
    found: dict[tuple[str, bool], list[str]] = {}
    for answer in file.answers:
        for label, judged in zip(answer.labels, file.key[str(answer.id)].holds, strict=True):
            if label.holds is not None and label.holds is not judged:
                note = f"{answer.id} ({label.why})" if label.why else str(answer.id)
                found.setdefault((label.statement, judged), []).append(note)
    for (statement, judged), ids in sorted(found.items(), key=lambda each: -len(each[1])):
        says = "holds" if judged else "does not hold"
        yield f"the judge says that {statement!r} {says}, not so the labels of {', '.join(ids)}"


def _stratum(
    file: LabelsFile, model: str, arm: LabelArm, *, judged: bool
) -> tuple[int, list[bool]]:
    """Return the number of answers in a stratum, and whether each labelled one passes."""
    labels = [
        answer.passed
        for answer in file.answers
        if answer.passed is not None
        and answer.model == model
        and file.key[str(answer.id)].arm == arm
        and file.key[str(answer.id)].judged is judged
    ]
    return file.cells[model].get(judge_labels.stratum_name(arm, judged=judged), 0), labels


def _read_labels_file(path: Path) -> LabelsFile | None:
    """Read a labels file, None if there is none.

    Raises:
        CommandError: It cannot be read or has problems.
    """
    try:
        return judge_labels.load_labels(path.parent)
    except BadFile as error:
        problems = [each.at(str(path)) for each in error.problems]
        raise command.problems_error(path, problems) from None


CANNOT_TELL = "cannot tell"
"""The note of a label that a person has left open on purpose."""

_HELP = "  [y] it holds  [n] it does not  [?] cannot tell  [b] back  [q] save and quit: "
_LABELS = {"y": (True, ""), "n": (False, ""), "?": (None, CANNOT_TELL)}


@contextmanager
def key_presses() -> Iterator[Callable[[], str]]:
    """Yield a function that returns the next key pressed at the terminal, without Enter."""
    if not sys.stdin.isatty():
        raise CommandError("judge label: needs a terminal, as it reads single keys")
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        # In lower case; the end of the input is q.
        yield lambda: sys.stdin.read(1).lower() or "q"
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def label_answers(file: LabelsFile, path: Path, next_key: Callable[[], str]) -> bool:
    """Ask for each label that nobody has given, and save each; return whether to go on.

    Args:
        file: The labels file; its key is not shown.
        path: Where it is.
        next_key: Returns the next key that is pressed.
    """
    answers = list(file.answers)
    open_labels = [
        (index, number)
        for index, answer in enumerate(answers)
        for number, label in enumerate(answer.labels)
        if label.holds is None and label.why != CANNOT_TELL
    ]
    at, shown = 0, -1
    while at < len(open_labels):
        index, number = open_labels[at]
        if index != shown:
            say(*_answer_lines(answers[index], index, len(answers)))
            shown = index
        labels = list(answers[index].labels)
        say(f"Statement {number + 1} of {len(labels)}:", f"  {labels[number].statement}")
        match _pressed(next_key):
            case "q":
                say(f"saved; the same command continues: {path}")
                return False
            case "b":
                at = max(0, at - 1)
                continue
            case key:
                holds, why = _LABELS[key]
        labels[number] = labels[number].model_copy(update={"holds": holds, "why": why})
        answers[index] = answers[index].model_copy(update={"labels": labels})
        file = file.model_copy(update={"answers": answers})
        judge_labels.write_labels(path.parent, file)
        at += 1
    done = f"{file.labelled} of {len(answers)} answers labelled"
    say(f"{path}: {done}", "next: pytest-upskill judge check")
    return True


def _pressed(next_key: Callable[[], str]) -> str:
    """Return the next key that means something."""
    sys.stdout.write(_HELP)
    sys.stdout.flush()
    while (key := next_key()) not in {*_LABELS, "b", "q"}:
        pass
    sys.stdout.write(f"{key}\n")
    return key


def _answer_lines(answer: LabelledAnswer, index: int, count: int) -> Iterator[str]:
    """Yield an answer with its question, line by line."""
    yield "-" * 60
    yield f"Answer {index + 1} of {count}, case {answer.case}"
    for title, lines in (("Question", answer.question.splitlines()), ("Answer", answer.text)):
        yield from ("", f"{title}:")
        yield from (f"  | {line}" for line in lines)
    yield ""
