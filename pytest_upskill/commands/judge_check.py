"""``pytest-upskill judge check``: compare a judge with the labels of a person."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_upskill import LABELS_FILE
from pytest_upskill.answers.judging import JudgeTask, judge_answers
from pytest_upskill.answers.workplace import Workplace
from pytest_upskill.cells.wording import judge_accuracy
from pytest_upskill.checks import Judge
from pytest_upskill.commands.command import PASSED, CommandError, problems_error
from pytest_upskill.commands.terminal import say
from pytest_upskill.formats.judge_labels import LabelledAnswer, LabelsFile, load_labels
from pytest_upskill.formats.load import SkillError, load_skills
from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.formats.skill_md.bundle import InstallError, with_files
from pytest_upskill.formats.source.problems import BadFile
from pytest_upskill.grading.calibration import CurrentCase, applicable, drift
from pytest_upskill.grading.check import agreements, decisions, disagreements, too_few_labels
from pytest_upskill.model import Model
from pytest_upskill.report.judge_notes import unusable
from pytest_upskill.sanitize.plural import counted
from pytest_upskill.session.without_tests.workplace import run_in_session
from pytest_upskill.trials.digests import case_digest, installed_digest, judge_name, skill_digest
from pytest_upskill.trials.result import unlabelled
from pytest_upskill.trials.trial import user_message

FAILED = 1
"""Exit code if labels do not apply, or are too few."""


def check_judge(options: argparse.Namespace) -> int:
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
    file = read_labels_file(path)
    assert file is not None
    now, cases = _current_cases(path, file, workplace)
    judge = file.judge if workplace.judge is None else judge_name(workplace.judge)
    say(
        f"{path}: {counted(len(file.answers), 'answer')}, {file.labelled} labelled, "
        f"drawn {file.drawn} for {file.judge}"
    )
    changes = [*drift(file, now, judge=judge, models=file.models)]
    valid = applicable(file, now, judge=judge, models=file.models)
    changes += unlabelled([answer.passed for answer in valid])
    removed = dict.fromkeys(answer.case for answer in file.answers if answer.case not in now)
    changes += [f"labels of {case} do not apply: the case no longer exists" for case in removed]
    if new_judge is None:
        decided = decisions(file, valid)
    else:
        valid = applicable(file, now, judge=file.judge, models=file.models)
        decided = _ask_judge(valid, cases, new_judge, workplace)
        say(f"  compared with {judge_name(new_judge)}")
    too_few = [*too_few_labels(file, valid)]
    lines = [*changes, *too_few] if new_judge is None else []
    say(*(f"  {line}" for line in lines))
    for arm in agreements(file, valid, decided):
        labels = counted(arm.labels, "label")
        say(f"  {arm.model} {arm.arm} the skill: {judge_accuracy(arm.agreement)} ({labels})")
    say(*(f"  {each}" for each in disagreements(valid, decided)))
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
                    statements=[each.statement for each in case.judge_checks],
                    skills=digests,
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


def read_labels_file(path: Path) -> LabelsFile | None:
    """Read a labels file, None if there is none.

    Raises:
        CommandError: It cannot be read or has problems.
    """
    try:
        return load_labels(path.parent)
    except BadFile as error:
        raise problems_error(path, [each.at(str(path)) for each in error.problems]) from None
