"""``pytest-upskill init``: a first case file for a skill, without a model."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Mapping
from os.path import lexists
from pathlib import Path
from typing import Any

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.discovery import skill_folders
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import PLACEHOLDER, Skill
from pytest_upskill.checks.blocks import LANGUAGES, blocks
from pytest_upskill.commands.command import (
    PASSED,
    PROGRAM,
    UNUSABLE,
    CommandError,
    problems_error,
    say,
    warn,
)
from pytest_upskill.commands.skill_folder import folder_of_skill, own_cases
from pytest_upskill.project.files import write_file
from pytest_upskill.project.messages import counted

_CHECK_BY_CODE = '"assertions": [{"type": "contains", "value": "TEXT"}]'


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.set_defaults(run=_run)
    parser.add_argument("skill", metavar="SKILL", type=Path, help="folder of a skill, or of skills")


def _run(options: argparse.Namespace) -> int:
    folders = sorted(skill_folders(options.skill)) or [folder_of_skill(options.skill)]
    written, code = [], PASSED
    for folder in folders:
        try:
            written += _init(folder)
        except CommandError as error:
            warn(f"ERROR: {error}")
            code = UNUSABLE
    if written:
        say("Rewrite the questions and checks, then run at no cost:", _trial_run(options.skill))
    return code


def _init(folder: Path) -> list[Path]:
    """Write a first case file for a skill without cases; return it in a list, else nothing."""
    target = folder / CASE_FILE
    found, problems = own_cases(folder)
    if problems:
        raise problems_error(folder, problems)
    for each in found:
        count = counted(len(each.cases), "case")
        say(f"{each.case_file}: {count}, run by: {_trial_run(folder)}")
    if found:
        if found[0].case_file.name != CASE_FILE:
            say(f"  to check an answer by code, add to a case: {_CHECK_BY_CODE}")
        return []
    if lexists(target):
        raise CommandError(f"{target} exists: add cases to it, or move it away")
    try:
        skill = load_skills(folder / "SKILL.md")[0]
    except SkillError as error:
        raise problems_error(folder / "SKILL.md", str(error).splitlines()) from None
    text = json.dumps(commented_file(skill, _trial_run(folder)), indent=2, ensure_ascii=False)
    try:
        write_file(target, f"{text}\n".encode(), mode=0o644)
    except OSError as error:
        raise CommandError(f"cannot write {target}: {error.strerror}") from None
    say(f"written: {target}")
    return [target]


def _trial_run(folder: Path) -> str:
    return f"{PROGRAM} eval {shlex.quote(str(folder))} -m offline"


_FENCE = re.compile(r"^(```++|~~~++).*?^\1", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,4}\s+(.+?)\s*#*$", re.MULTILINE)
_CODE_SPAN = re.compile(r"`([^`\n]{3,40})`")
_TELLING = re.compile(r"[\d_./=:@-]|\w[A-Z]")
"""A code span with one of these is hardly said by chance."""
_SHOWN_LITERALS = 8
_KINDS = (
    ("Every string must be in the answer; letter case is ignored.", "contains", 1),
    ("One of these strings must be in the answer.", "contains_any", 2),
)
"""Kinds of first cases: comment, key of the check, and number of literals."""
_NOT_FOR_IT: Mapping[str, Any] = {
    "$comment": "A similar request that is not for the skill: no agent should choose it.",
    "id": "not-for-this-skill",
    "input": f"{PLACEHOLDER}a similar request that the skill is not for",
    "should_trigger": False,
}


def commented_file(skill: Skill, command: str) -> Mapping[str, Any]:
    """Return a case file to be filled in, whose comments explain it.

    Args:
        skill: The skill, without cases.
        command: The command that runs the cases at no cost.
    """
    text = _FENCE.sub("", skill.text)
    notes = [
        f"The first cases of the skill {skill.name}. Rewrite every input and expected, then run:",
        command,
        "Ask what a user of the skill would ask, in their words, without giving the answer away.",
        "Check a fact that every correct answer states, and that only the skill tells.",
        "Ten cases tell more than ten runs of one.",
    ]
    if literals := _literals(text):
        notes.append(f"Literals of the skill that a check could look for: {', '.join(literals)}")
    cases = [*_fact_cases(text), *_code(skill.text), _NOT_FOR_IT]
    return {"$comment": notes, "cases": cases}


def _fact_cases(text: str) -> list[Mapping[str, Any]]:
    """Return a case for each of the first sections that name a literal, or else one to fill in."""
    _, *parts = _HEADING.split(text)
    sections = zip(parts[::2], parts[1::2], strict=True)
    found = [(title, literals) for title, part in sections if (literals := _literals(part))]
    shown = found[: len(_KINDS)] or [("a fact of the skill", ["a string of the answer"])]
    cases: list[Mapping[str, Any]] = []
    for (title, literals), (note, key, count) in zip(shown, _KINDS, strict=False):
        plain = title.replace("`", "")
        cases.append(
            {
                "$comment": note,
                "id": re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or key,
                "input": f"{PLACEHOLDER}a question about: {plain}",
                "expected": {key: literals[:count]},
            }
        )
    return cases


def _code(text: str) -> list[Mapping[str, Any]]:
    """Return a case for the first language of the skill's blocks that can be built."""
    found = (block.language for block in blocks(text))
    language = next((each for each in found if each in LANGUAGES), None)
    if language is None:
        return []
    note = "The code of the answer must build. Add 'run' with tests that it must pass."
    return [
        {
            "$comment": note,
            "id": f"{language}-code",
            "input": f"{PLACEHOLDER}a task whose answer is {language} code",
            "expected": {"compile": language},
        }
    ]


def _literals(text: str) -> list[str]:
    """Return the first telling code spans of a text without fenced blocks."""
    telling = (span for span in _CODE_SPAN.findall(text) if _TELLING.search(span))
    return list(dict.fromkeys(telling))[:_SHOWN_LITERALS]
