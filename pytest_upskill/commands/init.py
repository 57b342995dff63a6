"""``pytest-upskill init``: a first case file for a skill, without a model."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from os.path import lexists
from pathlib import Path
from typing import Any

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.evals.derived import Derived, derive
from pytest_upskill.cases.first_cases import commented_file
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.commands.command import (
    PASSED,
    PROGRAM,
    Command,
    CommandError,
    problems_error,
    say,
    warn,
)
from pytest_upskill.commands.skill_folder import folder_of_skill, own_cases
from pytest_upskill.project.files import write_file
from pytest_upskill.project.messages import counted

_SHOWN = 10
"""Lines of each list that are shown."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("skill", metavar="SKILL", type=Path, help="folder with a SKILL.md")


def _run(options: argparse.Namespace) -> int:
    folder = folder_of_skill(options.skill)
    target = folder / CASE_FILE
    if lexists(target):
        raise CommandError(f"{target} exists: add cases to it, or move it away")
    try:
        skill = load_skills(folder / "SKILL.md")[0]
    except SkillError as error:
        raise problems_error(folder / "SKILL.md", str(error).splitlines()) from None
    evals, problems = own_cases(folder)
    warn(*(f"not read: {problem}" for problem in problems))
    run = f"{PROGRAM} eval {shlex.quote(str(folder))} -m offline"
    if not evals:
        _write(target, commented_file(skill, run))
        say(f"written: {target}", "Rewrite its questions and checks, then run at no cost:", run)
        return PASSED
    derived = [(each.case_file, derive(each)) for each in evals]
    cases = [case for _, found in derived for case in found.cases]
    if cases:
        _write(target, {"$comment": _comment(derived), "cases": cases})
        count = counted(len(cases), "case")
        say(f"written: {target}: {count} with checks by code; review each before you trust it")
    else:
        say("nothing written: no expectation names a literal that a check could look for")
    for file, found in derived:
        say(*_proposal_lines(file, found))
    return PASSED


def _comment(derived: Sequence[tuple[Path, Derived]]) -> list[str]:
    names = ", ".join(file.name for file, _ in derived)
    return [
        f"Proposed without a model from the expectations in {names} that name a literal.",
        "Review each check: does every correct answer say exactly this, and no wrong one?",
    ]


def _write(target: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    try:
        write_file(target, text.encode(), mode=0o644)
    except OSError as error:
        raise CommandError(f"cannot write {target}: {error.strerror}") from None


def _proposal_lines(file: Path, found: Derived) -> Iterator[str]:
    yield f"{file}:"
    proposals = [
        (case, f"{each.key} {', '.join(map(repr, each.texts))} <- {each.statement}")
        for case, each in found.proposals
    ]
    for title, entries in (
        ("proposed checks", proposals),
        ("needs a judge (--upskill-judge MODEL)", found.judged),
        ("trigger tests, which run from this file as they are", found.triggers),
        ("needs an agent", found.agent),
    ):
        if entries:
            yield f"  {title}: {len(entries)}"
            yield from (f"    {case}: {text}" for case, text in entries[:_SHOWN])
        if more := len(entries[_SHOWN:]):
            yield f"    and {more} more"


COMMAND = Command(
    description="Write a first skill_meta.json for a skill, without a model.",
    epilog=(
        "If the skill has an evals file, the expectations that name a literal become\n"
        "proposed checks; the others are listed with what they need."
    ),
    add_arguments=_add_arguments,
    run=_run,
)
