"""``pytest-upskill judge``: draw answers for a person to label, and compare a judge with them."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pytest_upskill import LABELS_FILE
from pytest_upskill.answers.judging import JudgeTask, judge_answers
from pytest_upskill.answers.resources import Workplace
from pytest_upskill.cases.judge_labels import LabelledAnswer, LabelsFile, load_labels, write_labels
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.cases.skill_files import InstallError, with_files
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.checks.judge import Judge
from pytest_upskill.commands.command import (
    PASSED,
    CommandError,
    problems_error,
    say,
    whole_number_type,
)
from pytest_upskill.commands.judge_label import key_presses, label_answers
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.wording import judge_accuracy
from pytest_upskill.grading.drawing import STRATA, Drawing, draw
from pytest_upskill.grading.labels import (
    CurrentCase,
    agreements,
    apply,
    decisions,
    disagreements,
    too_few_labels,
)
from pytest_upskill.models import Model
from pytest_upskill.project.messages import counted
from pytest_upskill.project.project import project_folder
from pytest_upskill.report.document import ANSWER_LIMIT
from pytest_upskill.report.files.json import NAMED_BYTES, ReportError, read_report
from pytest_upskill.report.notes import unusable
from pytest_upskill.session.without_tests import run_in_session
from pytest_upskill.stats import MIN_LABELS
from pytest_upskill.trials.digests import case_digest, installed_digest, judge_name, skill_digest
from pytest_upskill.trials.result import unlabelled
from pytest_upskill.trials.trial import user_message

_ANSWERS = 40

FAILED = 1
"""Exit code if labels do not apply, or are too few."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = (
        "examples:\n"
        "  pytest --upskill-models haiku --upskill-judge opus --upskill-json r.json\n"
        "  pytest-upskill judge draw r.json\n"
        "  pytest-upskill judge label\n"
        "  pytest-upskill judge check\n"
    )
    actions = parser.add_subparsers(required=True, metavar="{draw,label,check}")
    drawing = actions.add_parser(
        "draw",
        help=f"write answers of a run to {LABELS_FILE}, for you to label",
        description=f"Write answers of a run to {LABELS_FILE}, for you to label.",
    )
    drawing.set_defaults(run=_draw)
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
    labelling = actions.add_parser(
        "label",
        help="label the drawn answers, one at a time",
        description="Label the drawn answers in the terminal, one at a time. q saves and quits.",
    )
    checking = actions.add_parser(
        "check",
        help="compare the judge with the labels; requests nothing unless --judge is given",
        description="Compare the judge with the labels; only --judge makes it send requests.",
    )
    for action, run in ((labelling, _label), (checking, _check)):
        action.set_defaults(run=run)
        action.add_argument(
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


def _draw(options: argparse.Namespace) -> int:
    try:
        report = read_report(options.report, NAMED_BYTES)
    except ReportError as error:
        raise CommandError(f"{options.report}: {error}") from None
    drawn = 0
    for path, cells in _group_by_case_file(gate.cell for gate in report.lifts).items():
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


def _group_by_case_file(cells: Iterable[Cell]) -> Mapping[Path, list[Cell]]:
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
    file = _read_labels_file(case_file.parent / LABELS_FILE)
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
    labelled = drawing.file.labelled
    kept = f", {labelled} of them labelled already" if labelled else ""
    say(f"{path}: {counted(count, 'answer')} of {', '.join(drawing.file.models)}{kept}")
    if drawing.unused:
        say(f"  labels of {counted(drawing.unused, 'answer')} are dropped: not drawn this time")
    if drawing.too_long:
        say(
            f"  {counted(drawing.too_long, 'judged answer')} cannot be drawn: longer than the "
            f"{ANSWER_LIMIT:,} characters that a report keeps"
        )
    sizes = [size for strata in drawing.file.cells.values() for size in strata.values()]
    few = answers // STRATA < min(MIN_LABELS, max(sizes))
    if few and labelled < count:
        say(
            f"  too few to correct a lift, which takes {MIN_LABELS} of each stratum: "
            f"--answers {STRATA * MIN_LABELS}"
        )
    if labelled < count:
        say("  label them with: pytest-upskill judge label")


def _label(options: argparse.Namespace) -> int:
    """Have a person label the answers of every labels file; return the exit code."""
    paths = list(_label_files(options.paths))
    if not paths:
        raise CommandError(f"no {LABELS_FILE} here: draw answers with pytest-upskill judge draw")
    with key_presses() as next_key:
        for path in paths:
            file = _read_labels_file(path)
            assert file is not None
            if not label_answers(file, path, next_key):
                break
    return PASSED


def _check(options: argparse.Namespace) -> int:
    """Compare the judge with every labels file; return the exit code."""
    paths = list(_label_files(options.paths))
    if not paths:
        # Not an error: a workflow may check a judge before anybody has labelled an answer.
        say(f"no {LABELS_FILE} in {', '.join(map(str, options.paths))}: nothing to compare")
        return PASSED

    def check_all(workplace: Workplace, _: object, judge: Model, __: object) -> int:
        new_judge = judge if options.judge else None
        valid = [_check_labels_file(path, workplace, new_judge) for path in paths]
        return PASSED if all(valid) else FAILED

    return run_in_session(
        check_all,
        place=paths[0].parent,
        teacher=options.judge or "offline",
        students=["offline"],
        base_url=None,
        arguments=[f"--upskill-cache={options.cache}"] if options.cache else [],
    )


def _label_files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob(LABELS_FILE))
        elif path.name == LABELS_FILE and path.is_file():
            yield path
        else:
            raise CommandError(f"{path}: neither a folder nor a {LABELS_FILE}")


def _check_labels_file(path: Path, workplace: Workplace, new_judge: Model | None) -> bool:
    """Print how the judge agrees with a labels file, and return whether its labels are valid."""
    file = _read_labels_file(path)
    assert file is not None
    now, cases = _current_cases(path, file, workplace)
    judge = file.judge if workplace.judge is None else judge_name(workplace.judge)
    say(
        f"{path}: {counted(len(file.answers), 'answer')}, {file.labelled} labelled, "
        f"drawn {file.drawn} for {file.judge}"
    )
    applied = apply(file, now, judge=judge, served=(), models=file.models)
    valid = applied.answers
    changes = [*applied.changes, *unlabelled([answer.passed for answer in valid])]
    removed = dict.fromkeys(answer.case for answer in file.answers if answer.case not in now)
    changes += [f"labels of {case} do not apply: the case no longer exists" for case in removed]
    if new_judge is None:
        decided = decisions(file, valid)
    else:
        valid = apply(file, now, judge=file.judge, served=(), models=file.models).answers
        decided = _ask_judge(valid, cases, new_judge, workplace)
        say(f"  compared with {judge_name(new_judge)}")
    too_few = [*too_few_labels(file, valid)]
    lines = [*changes, *too_few] if new_judge is None else []
    say(*(f"  {line}" for line in lines))
    for arm in agreements(file, valid, decided):
        labels = counted(arm.labels, "label")
        say(f"  {arm.model} {arm.arm} the skill: {judge_accuracy(arm.agreement)} ({labels})")
    say(*(f"  {line}" for line in disagreements(valid, decided)))
    return not too_few if new_judge is None else len(decided) == len(valid)


def _current_cases(
    path: Path, file: LabelsFile, workplace: Workplace
) -> tuple[dict[str, CurrentCase], dict[str, Case]]:
    """Return the cases as they are now, by id."""
    try:
        skills = load_skills(path.parent / file.case_file, extensions=workplace.extensions)
    except SkillError as error:
        raise problems_error(path.parent / file.case_file, str(error).splitlines()) from None
    now, cases = {}, {}
    for skill in skills:
        digests = _skill_digests(skill)
        for case in skill.cases:
            if case.skip is None:
                cases[case.id] = case
                now[case.id] = CurrentCase(
                    digest=case_digest(case),
                    skills=digests,
                    statements=None,
                )
    return now, cases


def _skill_digests(skill: Skill) -> frozenset[str]:
    """Return the digests of a skill as models and as agents get it."""
    try:
        return frozenset({skill_digest(skill), installed_digest(with_files(skill))})
    except InstallError:
        return frozenset({skill_digest(skill)})


def _ask_judge(
    answers: Sequence[LabelledAnswer],
    cases: Mapping[str, Case],
    judge: Model,
    workplace: Workplace,
) -> dict[int, Sequence[bool]]:
    """Return what a judge decides of each statement, by the answer's id; print what is missing."""
    tasks = [
        JudgeTask(
            subject=f"judgement of {answer.case}, answer {answer.id}",
            question=user_message(cases[answer.case]),
            text=answer.full_text,
            statements=[Judge(statement=label.statement) for label in answer.labels],
            reference=cases[answer.case].reference,
        )
        for answer in answers
    ]
    judgements = judge_answers(tasks, judge, workplace)
    pairs = list(zip(answers, judgements, strict=True))
    decided: dict[int, Sequence[bool]] = {
        answer.id: each for answer, each in pairs if not isinstance(each, str)
    }
    errors = [each for each in judgements if isinstance(each, str)]
    say(*(f"  {line}" for line in unusable(judge_name(judge), errors, len(decided))))
    say(*(f"  {line} ({counted(n, 'answer')})" for line, n in Counter(errors).items()))
    return decided


def _read_labels_file(path: Path) -> LabelsFile | None:
    """Read a labels file, None if there is none.

    Raises:
        CommandError: It cannot be read or has problems.
    """
    try:
        return load_labels(path.parent)
    except BadFile as error:
        raise problems_error(path, [each.at(str(path)) for each in error.problems]) from None
