"""``pytest-upskill init``: a first case file for a skill, without a model."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from os.path import lexists
from pathlib import Path
from typing import Any

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import PLACEHOLDER, Skill
from pytest_upskill.commands.command import (
    PASSED,
    PROGRAM,
    UNUSABLE,
    Command,
    CommandError,
    problems_error,
    say,
    warn,
)
from pytest_upskill.commands.derived import Derived, derive
from pytest_upskill.commands.skill_folder import folder_of_skill, own_cases
from pytest_upskill.project.files import write_file
from pytest_upskill.project.messages import counted

_SHOWN = 10
"""Lines of each list that are shown."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("skill", metavar="SKILL", type=Path, help="folder of a skill, or of skills")


def _run(options: argparse.Namespace) -> int:
    below = sorted(file.parent for file in options.skill.rglob("SKILL.md"))
    if below and options.skill not in below:
        return _init_each(below)
    return _init(folder_of_skill(options.skill))


def _init_each(folders: Sequence[Path]) -> int:
    """Write a first case file for each skill without cases; one that cannot be read is named."""
    without = [folder for folder in folders if not any(own_cases(folder))]
    written = [folder for folder in without if _init_one_of_many(folder)]
    if tested := len(folders) - len(without):
        say(f"{counted(tested, 'skill')} with cases: unchanged")
    if written:
        say("Rewrite the questions and checks, then run at no cost:", _trial_run(written[0].parent))
    return PASSED if written == without else UNUSABLE


def _init_one_of_many(folder: Path) -> bool:
    try:
        _write(folder / CASE_FILE, commented_file(_skill_of(folder), _trial_run(folder)))
    except CommandError as error:
        warn(str(error))
        return False
    say(f"written: {folder / CASE_FILE}")
    return True


def _skill_of(folder: Path) -> Skill:
    try:
        return load_skills(folder / "SKILL.md")[0]
    except SkillError as error:
        raise problems_error(folder / "SKILL.md", str(error).splitlines()) from None


def _trial_run(folder: Path) -> str:
    return f"{PROGRAM} eval {shlex.quote(str(folder))} -m offline"


def _init(folder: Path) -> int:
    target = folder / CASE_FILE
    if lexists(target):
        raise CommandError(f"{target} exists: add cases to it, or move it away")
    skill = _skill_of(folder)
    evals, problems = own_cases(folder)
    warn(*(f"not read: {problem}" for problem in problems))
    if not evals:
        run = _trial_run(folder)
        _write(target, commented_file(skill, run))
        say(f"written: {target}", "Rewrite its questions and checks, then run at no cost:", run)
        return PASSED
    derived = [(each.case_file, derive(each)) for each in evals]
    cases = [case for _, found in derived for case in found.cases]
    if cases:
        _write(target, {"$comment": _comment(derived), "cases": cases})
        count = counted(len(cases), "case")
        say(f"written: {target}: {count} with checks by code; review each before you trust it")
        say(f"{_names(derived)} still runs too: keep each case in one file only")
    else:
        say("nothing written: no expectation names a literal that a check could look for")
    for file, found in derived:
        say(*_proposal_lines(file, found))
    return PASSED


def _comment(derived: Sequence[tuple[Path, Derived]]) -> list[str]:
    return [
        f"Proposed without a model from the expectations in {_names(derived)} that name a literal.",
        "Review each check: does every correct answer say exactly this, and no wrong one?",
    ]


def _names(derived: Sequence[tuple[Path, Derived]]) -> str:
    return ", ".join(file.name for file, _ in derived)


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


_FENCE = re.compile(
    r"^(?P<mark>```++|~~~++)[ \t]*(?P<language>[\w+-]*).*?^(?P=mark)", re.MULTILINE | re.DOTALL
)
_HEADING = re.compile(r"^#{1,4}\s+(.+?)\s*#*$", re.MULTILINE)
_CODE_SPAN = re.compile(r"`([^`\n]{3,40})`")
_TELLING = re.compile(r"[\d_./=:@-]|\w[A-Z]")
"""A code span with one of these is hardly said by chance."""
_COMPILED: Mapping[str, str] = {
    **dict.fromkeys(("python", "py", "python3"), "python"),
    **dict.fromkeys(("cpp", "c++", "cc", "cxx"), "cpp"),
    **dict.fromkeys(("cuda", "cu"), "cuda"),
    "c": "c",
}
"""Languages of fenced blocks, by the names that Markdown has for them."""
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
    languages = (_COMPILED.get(match["language"].lower()) for match in _FENCE.finditer(text))
    language = next(filter(None, languages), None)
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
