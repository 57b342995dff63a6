"""Validation of proposals by code, before any further request."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_upskill.checks import Check as TextCheck
from pytest_upskill.checks import CheckError, CheckResult
from pytest_upskill.checks.extensions import Extensions
from pytest_upskill.formats.skill import Case
from pytest_upskill.formats.skill_meta.reader import read_cases
from pytest_upskill.formats.source.problems import BadFile
from pytest_upskill.grading.grade import text_checks_of
from pytest_upskill.teacher.proposals.proposals import Answers, Proposal
from pytest_upskill.teacher.work.copies import copies_words
from pytest_upskill.teacher.work.reply import Refused

EMPTY_ANSWERS = (
    "",
    "I don't know.",
    "I'm sorry, but I can't help with that.",
    "Yes.",
    "No.",
    "It depends on your setup; please consult the documentation.",
)
"""Answers without content, which no case may accept."""

_SIMILAR = 0.9
_NUMBER = re.compile(r"\b\w*\d\w*")
_SPACE = re.compile(r"\s+")

Check = Callable[[Case, str], Sequence[CheckResult]]
"""Checks a text by the checks of a case; may raise CheckError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationContext:
    """What a proposal is compared with."""

    skill_text: str
    source_text: str
    existing: Sequence[Case]
    """The cases of the skill, and the proposals that were accepted so far."""
    extensions: Extensions
    check: Check


def read_case(entry: dict[str, Any], extensions: Extensions) -> Case:
    """Read an entry as the reader of case files does.

    Raises:
        Refused: It is not valid.
    """
    try:
        (case,), _ = read_cases(json.dumps({"cases": [entry]}), extensions=extensions)
    except BadFile as error:
        problem = error.problems[0]
        raise Refused(f"the reader refuses it: {problem.where}: {problem.what}") from None
    return case


def validate(proposal: Proposal, context: ValidationContext) -> Case:
    """Return the case of a proposal.

    Raises:
        Refused: Something rules it out.
    """
    entry: dict[str, Any] = {"input": proposal.input, "expected": dict(proposal.expected)}
    case = read_case(({"id": proposal.id} if proposal.id else {}) | entry, context.extensions)
    for reason in (
        *_case_problems(case),
        *_question_problems(case, proposal, context),
        *check_problems(proposal, case, context.check),
    ):
        raise Refused(reason)
    return case


def check_problems(answers: Answers, case: Case, check: Check) -> Iterator[str]:
    """Yield why a case does not distinguish right answers from wrong ones.

    Args:
        answers: Right and wrong answers to try.
        case: The case.
        check: Decides its checks.
    """
    for text_check in text_checks_of(case):
        if not text_check.is_negative and _passes(text_check, case.input):
            yield f"the question gives the answer away: it passes {text_check.name}"

    def failures(text: str) -> list[str]:
        return [result.message for result in check(case, text) if not result.passed]

    try:
        if failed := failures(answers.reference):
            yield f"its own reference answer fails: {failed[0]}"
        for answer in answers.alternatives:
            if failed := failures(answer):
                yield f"too literal: another right answer fails: {failed[0]}"
        for answer in (*EMPTY_ANSWERS, case.input, *answers.wrong):
            if not failures(answer):
                yield f"accepts a wrong answer: {answer[:60]!r}"
    except CheckError as error:
        yield f"cannot be checked here: {error}"


def _case_problems(case: Case) -> Iterator[str]:
    if case.agent_key:
        yield f"'{case.agent_key}' needs an agent"
    if case.judge_checks:
        yield "needs a judge: only checks by code are kept"
    if all(isinstance(check, TextCheck) and check.is_negative for check in case.checks):
        yield "has no positive check: an empty answer would pass"


def _question_problems(case: Case, proposal: Proposal, context: ValidationContext) -> Iterator[str]:
    if proposal.quote and _normalize(proposal.quote) not in _normalize(context.source_text):
        yield f"its quote is not in the sources: {proposal.quote[:60]!r}"
    if copies_words(context.skill_text, case.input):
        yield "its question appears in the skill: 8 words in a row are the same"
    for existing in context.existing:
        if existing.id == case.id:
            yield f"has the id of another case: {existing.id}"
        if _are_similar(existing.input, case.input):
            yield f"nearly repeats {existing.id}"


def _passes(check: Any, text: str) -> bool:
    try:
        return bool(check.check(text).passed)
    except CheckError:
        return False


def _are_similar(question: str, other_question: str) -> bool:
    first, second = _normalize(question), _normalize(other_question)
    if set(_NUMBER.findall(first)) != set(_NUMBER.findall(second)):
        # With another number, it is another question.
        return False
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    return matcher.quick_ratio() > _SIMILAR and matcher.ratio() > _SIMILAR


def _normalize(text: str) -> str:
    """Return a text without what a quote may lose: case and the width of blanks."""
    return _SPACE.sub(" ", text).strip().casefold()
