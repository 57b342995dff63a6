"""Proposed cases: the question for them, and the rules that need no request."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.cases.skill_meta.expected import Expected, keys_of
from pytest_upskill.cases.skill_meta.reader import read_cases
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.checks import CheckError
from pytest_upskill.checks.extensions import Extensions
from pytest_upskill.checks.result import Check as TextCheck
from pytest_upskill.grading.grade import text_checks_of
from pytest_upskill.teacher.additions import copies_words
from pytest_upskill.teacher.engine import Engine, Refused, validate_as

Text = Annotated[str, Field(min_length=1)]

KEYS = "; ".join(
    f'"{key}" ({makes.kind.for_teacher})'
    for key, (_, makes) in keys_of(Expected).items()
    if makes.kind.for_teacher
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A case that a teacher proposes, with right and wrong answers that validate its checks."""

    id: str = ""
    input: Text
    expected: Mapping[str, Any]
    quote: str = ""
    reference: Text
    alternatives: Annotated[tuple[Text, ...], Field(min_length=2)]
    wrong: Annotated[tuple[Text, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """A request that a teacher proposes, and whether it is for the skill."""

    query: Text
    for_skill: bool


def read_query(
    entry: object, skill: Skill, existing: Iterable[Case], extensions: Extensions
) -> Case:
    """Read an entry of a reply as a case about which skill is chosen.

    Raises:
        Refused: It is malformed, or says too much.
    """
    read = validate_as(_Query, entry)
    case = _read_case({"input": read.query, "should_trigger": read.for_skill}, extensions)
    if skill.name.casefold() in read.query.casefold():
        raise Refused("names the skill")
    if copies_words(skill.description, read.query):
        raise Refused("repeats 8 words of the description")
    for problem in _repetitions(case, existing):
        raise Refused(problem)
    return case


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


def _read_case(entry: dict[str, Any], extensions: Extensions) -> Case:
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


def validate(
    proposal: Proposal, engine: Engine, existing: Sequence[Case], *, skill: str, sources: str
) -> Case:
    """Return the case of a proposal.

    Args:
        proposal: The proposal.
        engine: Runs the checks.
        existing: The cases of the skill, and the proposals that were accepted so far.
        skill: The text of the skill.
        sources: The texts of the sources.

    Raises:
        Refused: Something rules it out.
    """
    entry: dict[str, Any] = {"input": proposal.input, "expected": dict(proposal.expected)}
    entry |= {"id": proposal.id} if proposal.id else {}
    case = _read_case(entry, engine.workplace.extensions)
    # Questions that differ in a name only have other answers.
    same = [e for e in existing if e.id == case.id or _accepts(e, proposal.reference, engine)]
    for reason in (
        *_case_problems(case, proposal, skill, sources),
        *_repetitions(case, same),
        *_check_problems(proposal, case, engine),
    ):
        raise Refused(reason)
    return case


def _case_problems(case: Case, proposal: Proposal, skill: str, sources: str) -> Iterator[str]:
    if case.agent_key:
        yield f"'{case.agent_key}' needs an agent"
    if case.judge_checks:
        yield "needs a judge: only checks by code are kept"
    if all(isinstance(check, TextCheck) and check.is_negative for check in case.checks):
        yield "has no positive check: an empty answer would pass"
    if proposal.quote and _normalize(proposal.quote) not in _normalize(sources):
        yield f"its quote is not in the sources: {proposal.quote[:60]!r}"
    if copies_words(skill, case.input):
        yield "its question appears in the skill: 8 words in a row are the same"


def _check_problems(proposal: Proposal, case: Case, engine: Engine) -> Iterator[str]:
    """Yield why a case does not distinguish right answers from wrong ones."""

    def failures(text: str) -> list[str]:
        results = engine.check_by_code(case, text)
        return [result.message for result in results if not result.passed]

    try:
        for check in text_checks_of(case):
            if not check.is_negative and check.check(case.input).passed:
                yield f"the question gives the answer away: it passes {check.name}"
        if failed := failures(proposal.reference):
            yield f"its own reference answer fails: {failed[0]}"
        for answer in proposal.alternatives:
            if failed := failures(answer):
                yield f"too literal: another right answer fails: {failed[0]}"
        for answer in (*EMPTY_ANSWERS, case.input, *proposal.wrong):
            if not failures(answer):
                yield f"accepts a wrong answer: {answer[:60]!r}"
    except CheckError as error:
        yield f"cannot be checked here: {error}"


def _accepts(case: Case, text: str, engine: Engine) -> bool:
    try:
        return all(result.passed for result in engine.check_by_code(case, text))
    except CheckError:
        return False


def _repetitions(case: Case, existing: Iterable[Case]) -> Iterator[str]:
    for other in existing:
        if other.id == case.id:
            yield f"has the id of another case: {other.id}"
        if _are_similar(other.input, case.input):
            yield f"nearly repeats {other.id}"


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
