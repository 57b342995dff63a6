"""``pytest-upskill init``: a first case file for a skill, without a model."""

import argparse
import json
import shlex
from collections.abc import Mapping
from os.path import lexists
from pathlib import Path
from typing import Any

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.discovery import skill_folders
from pytest_upskill.cases.skill import PLACEHOLDER, Skill
from pytest_upskill.commands import command
from pytest_upskill.project.messages import counted


def add(parser: command.Parser) -> None:
    """Add the arguments of the command."""
    parser.set_defaults(run=_run)
    parser.add_argument("skill", metavar="SKILL", type=Path, help="folder of a skill, or of skills")


def _run(options: argparse.Namespace) -> int:
    folders = sorted(skill_folders(options.skill)) or [command.folder_of_skill(options.skill)]
    written, code = [], command.PASSED
    for folder in folders:
        try:
            written += _init(folder)
        except command.CommandError as error:
            command.warn(f"ERROR: {error}")
            code = command.UNUSABLE
    if written:
        place = options.skill if options.skill.is_dir() else folders[0]
        command.say("Rewrite the questions and checks, then run at no cost:", _trial_run(place))
    return code


def _init(folder: Path) -> list[Path]:
    """Write a first case file for a skill without cases; return it in a list, else nothing."""
    target = folder / CASE_FILE
    found, problems = command.own_cases(folder)
    if problems:
        raise command.problems_error(folder, problems)
    for each in found:
        found_there = f"{each.case_file}: exists, with {counted(len(each.cases), 'case')}"
        command.say(f"{found_there}: {command.PROGRAM} list says what they need")
    if found:
        return []
    if lexists(target):
        raise command.CommandError(f"{target} exists: add cases to it, or move it away")
    skill = command.load_skill(folder)
    text = json.dumps(_commented_file(skill, _trial_run(folder)), indent=2, ensure_ascii=False)
    command.write(target, f"{text}\n", 0o644)
    command.say(f"written: {target}")
    return [target]


def _trial_run(folder: Path) -> str:
    return f"pytest --upskill-models offline {shlex.quote(str(folder))}"


def _commented_file(skill: Skill, command: str) -> Mapping[str, Any]:
    """Return a case file to be filled in, whose comments explain it.

    Args:
        skill: The skill, without cases.
        command: The command that runs the cases at no cost.
    """
    notes = [
        f"The first cases of the skill {skill.name}. Rewrite every input and expected, then run:",
        command,
        "Ask what a user of the skill would ask, in their words, without giving the answer away.",
        "Check a fact that every correct answer states, and that only the skill tells.",
        'Code: add "compile": "python" (or cuda, c, …) and "run" with tests that it must pass.',
        "Ten cases tell more than ten runs of one.",
    ]
    fact = {
        "$comment": "Every string must be in the answer; letter case is ignored.",
        "id": "fact",
        "input": f"{PLACEHOLDER}a question about a fact of the skill",
        "expected": {"contains": [f"{PLACEHOLDER}a text that every right answer has"]},
    }
    near_miss = {
        "$comment": "A similar request that is not for the skill: no agent should choose it.",
        "id": "not-for-this-skill",
        "input": f"{PLACEHOLDER}a similar request that the skill is not for",
        "should_trigger": False,
    }
    return {"$comment": notes, "cases": [fact, near_miss]}
