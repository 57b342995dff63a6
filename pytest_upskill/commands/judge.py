"""``pytest-upskill judge``: draw answers for a person to label, and compare a judge with them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_upskill import LABELS_FILE
from pytest_upskill.cells.wording import found
from pytest_upskill.commands.command import PASSED, Command, CommandError
from pytest_upskill.formats.judge_labels import LabelsFile, load_labels, write_labels
from pytest_upskill.formats.source.problems import BadFile
from pytest_upskill.grading.calibration import CurrentCase, applicable, drift
from pytest_upskill.grading.check import agreements, decisions, disagreements, lacking
from pytest_upskill.grading.draw import STRATA, Drawing, draw
from pytest_upskill.report.files.json import ReportError, read_json
from pytest_upskill.repository.project import project_folder
from pytest_upskill.sanitize.safe_text import safe_line
from pytest_upskill.trial import (
    case_digest,
    installed_digest,
    judge_name,
    skill_digest,
    user_message,
)

if TYPE_CHECKING:
    from pytest_upskill.cells.cell import Cell
    from pytest_upskill.formats.judge_labels import LabelledAnswer
    from pytest_upskill.model import Model
    from pytest_upskill.skill import Case, Skill
    from pytest_upskill.teacher.engine import Workplace

FAILED = 1
"""Exit code if labels do not apply, or are too few."""

_ANSWERS = 40


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    drawing = actions.add_parser(
        "draw", help="write answers of a run into judge_labels.json, for you to label"
    )
    drawing.add_argument("report", type=Path, metavar="REPORT.json", help="of --upskill-json")
    drawing.add_argument(
        "--answers",
        type=_answers,
        default=_ANSWERS,
        metavar="N",
        help="answers of each model (%(default)s)",
    )
    checking = actions.add_parser(
        "check", help="compare the judge with the labels; requests nothing unless --judge is given"
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
        "--judge", metavar="MODEL", help="another judge, as in --upskill-judge: asks it"
    )
    checking.add_argument(
        "--cache", metavar="MODE", help="as --upskill-cache; replay only reads recordings"
    )


def _run(options: argparse.Namespace) -> int:
    return _draw(options) if options.action == "draw" else _check(options)


COMMAND = Command(
    description="Check a judge: draw answers to label, and compare the judge with the labels.",
    add_arguments=_add_arguments,
    run=_run,
    epilog=(
        "examples:\n"
        "  pytest --upskill-models haiku --upskill-judge sonnet --upskill-json r.json skills\n"
        "  pytest-upskill judge draw r.json\n"
        "  pytest-upskill judge check skills\n"
    ),
)


def _draw(options: argparse.Namespace) -> int:
    try:
        report = read_json(options.report.read_bytes())
    except ReportError as error:
        raise CommandError(f"{options.report}: {error}") from None
    except OSError as error:
        raise CommandError(f"{options.report}: {error.strerror}") from None
    drawn = 0
    for path, cells in _by_case_file(report.cells).items():
        drawing = draw(
            [trial for cell in cells for trial in cell.trials],
            case_file=path.name,
            judge=cells[0].judge,
            answers=options.answers,
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            before=_labels_of(path),
        )
        if drawing is not None:
            drawn += 1
            _say_drawn(_written(path.parent, drawing), drawing)
    if not drawn:
        raise CommandError(
            f"{options.report}: no run in it depended on a judge: run pytest with --upskill-judge"
        )
    return PASSED


def _by_case_file(cells: Sequence[Cell]) -> Mapping[Path, list[Cell]]:
    """Return the judged cells by the path of their case file."""
    found: dict[Path, list[Cell]] = {}
    for cell in cells:
        if cell.judge:
            found.setdefault(_place(cell), []).append(cell)
    return found


def _place(cell: Cell) -> Path:
    for path in (Path(cell.path), project_folder(Path.cwd()) / (cell.case_file or cell.path)):
        if path.is_file():
            return path
    raise CommandError(f"{cell.path}: no such file: start in the folder in which pytest ran")


def _labels_of(case_file: Path) -> LabelsFile | None:
    """Return the labels of a case file, None if there are none."""
    file = _read(case_file.parent / LABELS_FILE)
    if file is not None and file.case_file != case_file.name:
        raise CommandError(
            f"{case_file.parent / LABELS_FILE}: it has the labels of {file.case_file}: a folder "
            "can have labels of one case file"
        )
    return file


def _read(path: Path) -> LabelsFile | None:
    try:
        return load_labels(path.parent)
    except BadFile as error:
        raise CommandError("\n".join(each.at(str(path)) for each in error.problems)) from None


def _written(folder: Path, drawing: Drawing) -> Path:
    try:
        return write_labels(folder, drawing.file)
    except OSError as error:
        raise CommandError(f"{folder / LABELS_FILE}: {error.strerror}") from None


def _say_drawn(path: Path, drawing: Drawing) -> None:
    count = len(drawing.file.answers)
    kept = f", {drawing.kept} of them labelled already" if drawing.kept else ""
    _say(f"{path}: {count} answers of {', '.join(drawing.file.models)}{kept}")
    for line in drawing.dropped:
        _say(f"  {line}")
    if drawing.kept < count:
        _say('  set each "holds" to true or false without reading "key" at the end; then run')
        _say("  pytest-upskill judge check")


def _check(options: argparse.Namespace) -> int:
    paths = list(_label_files(options.paths))
    if not paths:
        named = ", ".join(map(str, options.paths))
        raise CommandError(f"{named}: no {LABELS_FILE}: write one with pytest-upskill judge draw")
    # Imported here: it imports pytest.
    from pytest_upskill.session.workplace import in_session

    def work(workplace: Workplace, _: object, judge: Model, __: object) -> int:
        asked = judge if options.judge else None
        fine = [_check_one(path, workplace, asked) for path in paths]
        return PASSED if all(fine) else FAILED

    return in_session(
        work,
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


def _check_one(path: Path, workplace: Workplace, asked: Model | None) -> bool:
    """Print how the judge agrees with a labels file, and return whether its labels are valid."""
    file = _read(path)
    assert file is not None
    now, cases = _current(path, file, workplace)
    judge = file.judge if workplace.judge is None else judge_name(workplace.judge)
    _say(
        f"{path}: {len(file.answers)} answers, {file.labelled} labelled, drawn {file.drawn} "
        f"for {file.judge}"
    )
    changes = [*drift(file, now, judge=judge, models=file.models)]
    valid = applicable(file, now, judge=judge, models=file.models)
    if asked is None:
        decided = decisions(file, valid)
    else:
        valid = applicable(file, now, judge=file.judge, models=file.models)
        decided = _ask(valid, cases, asked, workplace)
        _say(f"  compared with {judge_name(asked)}")
    short = [*lacking(file, valid)]
    lines = [*changes, *short] if asked is None else []
    for line in lines:
        _say(f"  {line}")
    for arm in agreements(file, valid, decided):
        _say(f"  {arm.model} {arm.arm} the skill: {found(arm.agreement)} ({arm.labels} labels)")
    for each in disagreements(valid, decided):
        _say(f"  {each}")
    return not short if asked is None else len(decided) == len(valid)


def _current(
    path: Path, file: LabelsFile, workplace: Workplace
) -> tuple[dict[str, CurrentCase], dict[str, Case]]:
    """Return the cases as they are now, by id."""
    from pytest_upskill.formats.load import SkillError, load_skills
    from pytest_upskill.grading.grade import statements_of

    try:
        skills = load_skills(path.parent / file.case_file, extensions=workplace.extensions)
    except SkillError as error:
        raise CommandError(str(error)) from None
    now, cases = {}, {}
    for skill in skills:
        digests = _skill_digests(skill)
        for case in skill.cases:
            if case.skip is None:
                cases[case.id] = case
                now[case.id] = CurrentCase(
                    digest=case_digest(case),
                    statements=[each.statement for each in statements_of(case)],
                    skills=digests,
                )
    return now, cases


def _skill_digests(skill: Skill) -> frozenset[str]:
    """Return the digests of a skill as models and as agents get it."""
    from pytest_upskill.formats.skill_md.installed import InstallError, with_files

    try:
        return frozenset({skill_digest(skill), installed_digest(with_files(skill))})
    except InstallError:
        return frozenset({skill_digest(skill)})


def _ask(
    answers: Sequence[LabelledAnswer],
    cases: Mapping[str, Case],
    judge: Model,
    workplace: Workplace,
) -> dict[int, Sequence[bool]]:
    """Return what a judge decides of each statement, by the answer's id; print what is missing."""
    from pytest_upskill.completions.rejudge import JudgedAnswer, judge_answers

    asks = [
        JudgedAnswer(
            subject=f"judgement of {answer.case}, answer {answer.id}",
            question=user_message(cases[answer.case]),
            text=answer.whole,
            statements=[label.statement for label in answer.labels],
            reference=cases[answer.case].reference,
        )
        for answer in answers
    ]
    said = judge_answers(
        asks,
        judge,
        host=workplace.hosts([judge])[judge],
        resources=workplace.resources,
        concurrency=workplace.concurrency,
    )
    decided: dict[int, Sequence[bool]] = {}
    for answer, each in zip(answers, said, strict=True):
        if isinstance(each, str):
            _say(f"  answer {answer.id}: {each}")
        else:
            decided[answer.id] = each
    return decided


def _answers(text: str) -> int:
    if not text.isdecimal() or not STRATA <= int(text) <= 10_000:  # noqa: PLR2004  any limit
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {STRATA} to 10000")
    return int(text)


def _say(line: str) -> None:
    sys.stdout.write(f"{safe_line(line)}\n")
