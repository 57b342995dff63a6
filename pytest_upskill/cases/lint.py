"""Defects of cases and descriptions that can be found without a model."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from pytest_upskill.cases.adapters.choice import choice_in
from pytest_upskill.cases.catalogue import Catalogue, ListedSkill
from pytest_upskill.cases.skill import Case, Skill, plain_name
from pytest_upskill.cases.source.document import Problem
from pytest_upskill.checks import CheckError
from pytest_upskill.checks.code import Run, find_tests
from pytest_upskill.checks.text import Contains, NotContains, TextCheck, cut


def findings(skill: Skill) -> list[Problem]:
    """Return the defects of a skill's cases, in the order of the file."""
    found: list[Problem] = []
    first: dict[object, Case] = {}
    for case in skill.cases:
        whats = [*filter(None, [case.unwritten]), *_question(case, skill)]
        if case.is_answered:
            whats += _checks(case)
            found += _echoes(case)
        elif case.checks:
            what = "its checks never run, as should_trigger is false"
            found.append(_at(case, what, is_hint=True))
        other = first.setdefault((case.input, case.files, case.workspace, case.setup), case)
        if other is not case and case.input:  # what is one question would count as two
            whats.append(
                f"asks the same as {other.id} in line {other.line}: give one case both checks, or "
                "ask something else"
            )
        found += (_at(case, what) for what in whats)
    return sorted(found)


def checks_that_tell_nothing(skill: Skill) -> list[Problem]:
    """Return the checks of a skill that pass whatever the answer is, or fail whatever it is."""
    answered = (case for case in skill.cases if case.is_answered and not case.skip)
    return [_at(case, what) for case in answered for what in _checks(case)]


def _at(case: Case, what: str, *, is_hint: bool = False) -> Problem:
    return Problem(line=case.line, column=case.column, where=case.id, what=what, is_hint=is_hint)


_UNWRITTEN = re.compile(
    r"(TODO|TBD|FIXME)(\W*|: (add|describe|fill|insert|replace|write)\b.*)"
    r"|\.{3}|…|<[^<>]*>|\{\{[^{}]*\}\}",
    re.DOTALL,
)
"""Whole questions that somebody still has to write."""

_PATH = re.compile(r"(\./)?[\w@.-]+(/[\w@.-]+)*\.\w{1,8}")


def _question(case: Case, skill: Skill) -> Iterator[str]:
    """Find what is no question to a model."""
    text = case.input.strip()
    if _UNWRITTEN.fullmatch(text):
        yield f"the input is a placeholder, {text[:40]!r}: write a question"
    elif _PATH.fullmatch(text) and any(
        (above / text).is_file() for above in (skill.case_file.parent, skill.folder)
    ):
        yield f"the input is the name of a file, {text!r}: write what is in it"

    def is_own(name: str) -> bool:
        return plain_name(name) == plain_name(skill.name)

    if not case.trigger:
        for check in case.judge_checks:
            _, is_about_choice = choice_in(check.statement, is_own, is_said=False)
            if is_about_choice:
                yield (
                    f"{check.statement[:80]!r} is about the choice of a skill, which no answer "
                    "shows: write should_trigger"
                )


def _echoes(case: Case) -> Iterator[Problem]:
    """Find checks that the question itself satisfies; it is a hint where others tell something."""
    echoed = [
        check
        for check in case.checks
        if isinstance(check, TextCheck) and check.demands_text
        if _holds(check, case.input) and not _holds(check, "")
    ]
    tells_nothing = all(
        isinstance(check, TextCheck) and _holds(check, case.input) for check in case.checks
    )
    for check in echoed:
        what = "satisfied by the question itself: an answer that repeats it passes"
        found = _at(case, what, is_hint=not tells_nothing)
        yield replace(found, where=f"{case.id}: {_describe(check)}")


def _checks(case: Case) -> Iterator[str]:
    """Find checks that say nothing about an answer, alone or together."""
    forbidden = [check for check in case.checks if isinstance(check, NotContains)]
    for check in case.checks:
        match check:
            case TextCheck() if check.demands_text and _holds(check, ""):
                yield f"{_describe(check)} can never fail: it passes even for an empty answer"
            case NotContains() if not check.text.strip():
                yield f"{_describe(check)} can hardly ever pass: it forbids spaces"
            case TextCheck() if check.is_negative and not _holds(check, ""):
                yield f"{_describe(check)} can never pass: it is found even in an empty answer"
            case Run() if check.language == "python" and (why := find_tests(check.code).problem):
                yield f"run can never be decided: {why}"
            case Contains():
                for other in forbidden:
                    if other.text.casefold() in check.text.casefold():
                        yield f"{_describe(check)} and {_describe(other)} can never both pass"


def _holds(check: TextCheck, text: str) -> bool:
    try:
        return check.check(text).passed
    except CheckError:
        return False


def _describe(check: TextCheck) -> str:
    return f"{check.name} {cut(', '.join(map(repr, check.wanted)), 60)}"


SMALL, LARGE = 8_000, 30_000
"""Characters of Claude Code's catalogue, as measured with version 2.1.330: for models with a
context window of 200,000 tokens, and with one of 1,000,000."""


def description_findings(skill: ListedSkill, catalogue: Catalogue) -> Iterator[str]:
    """Yield what may keep an agent from choosing a skill, one line each.

    Args:
        skill: The skill.
        catalogue: The skills that an agent sees with it.
    """
    if skill in without_description(catalogue, SMALL):
        models, limit = "", LARGE
        if skill not in without_description(catalogue, LARGE):
            models, limit = " to models with a window of 200k tokens", SMALL
        size = sum(len(f"- {each.name}: {each.description}\n") for each in catalogue.skills)
        yield (
            f"Claude Code shows only the name of this skill{models}: the catalogue of "
            f"{len(catalogue.skills)} skills has {size:,} characters, and its limit is "
            f"{limit:,}: shorten the descriptions"
        )


def without_description(catalogue: Catalogue, budget: int) -> list[ListedSkill]:
    """Return the skills whose descriptions Claude Code would not show.

    All names are shown. Descriptions follow in the order of names as long as there is room.

    Args:
        catalogue: The skills, its own included.
        budget: Characters of the whole catalogue.
    """
    room = budget - sum(len(f"- {skill.name}\n") for skill in catalogue.skills)
    used = accumulate(len(f": {skill.description}") for skill in catalogue.skills)
    return [skill for skill, size in zip(catalogue.skills, used, strict=True) if size > room]
