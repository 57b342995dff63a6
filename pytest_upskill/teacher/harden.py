"""``cases --harden``: code checks in place of prose statements of an evals file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.adapters import registry
from pytest_upskill.cases.adapters.reading import Reading
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.cases.source.document import Document, JsonPath
from pytest_upskill.models import Completion
from pytest_upskill.project.files import MAX_TEXT_BYTES, read_file
from pytest_upskill.teacher.cases import FRESH_ANSWERS, refuted_by_teacher
from pytest_upskill.teacher.engine import (
    Engine,
    Part,
    Refused,
    check_models,
    complete_text,
    plan_lines,
    read_json_reply,
    validate_as,
)
from pytest_upskill.teacher.files import Change, byte_order_mark, check_clean
from pytest_upskill.teacher.outcome import CommandOutcome, run_and_record
from pytest_upskill.teacher.proposals import Answers, Text, check_problems, read_case
from pytest_upskill.teacher.sources import MATERIAL, marked
from pytest_upskill.trials.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A prose statement and its position in the file."""

    name: str
    """``case-id: statement 2``."""
    text: str
    case: Case
    number: int
    """From 1, in its case."""
    place: JsonPath


def find_statements(
    cases: Sequence[Case], reading: Reading
) -> tuple[list[Statement], dict[str, str]]:
    """Return the statements that can be replaced, and why each other one cannot, by its name."""
    document = reading.document
    entries = {document.line(each.entry.path): each.entry.path for each in reading.entries}
    found, unchanged = list[Statement](), dict[str, str]()
    for case in cases:
        texts = [check.statement for check in case.judge_checks]
        for number, text in enumerate(texts, 1):
            name = f"{case.id}: statement {number}"
            place = _place(document, entries.get(case.line, ()), text)
            if case.skip or case.agent_key:
                unchanged[name] = case.skip or f"'{case.agent_key}' needs an agent"
            elif place is None:
                unchanged[name] = "is not a text in a list of the file"
            else:
                found.append(Statement(name=name, text=text, case=case, number=number, place=place))
    return found, unchanged


def _place(document: Document, entry: JsonPath, text: str) -> JsonPath | None:
    """Return the position of a statement in the entry of its case, None if it is not there."""
    for path in document.offsets:
        if path[: len(entry)] == entry and path and isinstance(path[-1], int):
            value = document.value
            for step in path:
                value = value[step]
            if isinstance(value, str) and value.strip() == text:
                return path
    return None


def with_assertions(
    content: bytes, document: Document, found: Sequence[tuple[Statement, Mapping[str, Any]]]
) -> bytes:
    """Return a file with assertions in place of statements and no other change.

    Args:
        content: The file.
        document: The parsed file.
        found: Statements with their assertions.
    """
    text = content.decode("utf-8-sig")
    decoder = json.JSONDecoder()
    places = [(document.offsets[each.place].value, assertion) for each, assertion in found]
    for at, assertion in sorted(places, key=lambda place: -place[0]):
        _, end = decoder.raw_decode(text, at)
        text = text[:at] + json.dumps(assertion, ensure_ascii=False) + text[end:]
    return byte_order_mark(content) + text.encode()


_HARDEN = """\
Below are an agent skill, a question to a model that has read it, and numbered statements about \
the answer that a judge decides today. Give for every statement that code can decide one check \
that does so: "contains" (a string; case does not matter), "contains_any" (a list of strings), or \
"regex" (Python). It must accept every right answer, however it is worded, and no wrong one. Leave \
out the statements that code cannot decide.

Reply with one fenced JSON block:

```json
{"checks": [{"statement": 1, "type": "regex", "value": "(?i)0x5A",
  "reference": "an answer for which the statement is true",
  "alternatives": ["another, in other words", "a third"],
  "wrong": ["a plausible answer for which it is false"]}]}
```
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProposedCheck(Answers):
    """A check that a teacher proposes for a statement."""

    statement: int
    type: Literal["contains", "contains_any", "regex"]
    value: Text | Annotated[list[Text], Field(min_length=1)]


_CHECK = TypeAdapter(_ProposedCheck)


def harden(engine: Engine, skill: Skill) -> CommandOutcome:
    """Propose, validate and offer code checks for statements; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    file = skill.case_file
    if file.suffix != ".json" or file.name == "skill_meta.json":
        raise WorkError(f"{file}: --harden changes evals files in JSON: name a skill with one")
    check_models(engine)
    if engine.terms.consent.apply:
        check_clean(file)
    content = read_file(file, MAX_TEXT_BYTES)
    text = content.decode("utf-8-sig")
    reading = registry.read(file, text, adapters=registry.ADAPTERS)
    if reading is None:
        raise WorkError(f"{file}: no known format has such a shape")
    document = reading.document
    statements, unchanged = find_statements(skill.cases, reading)
    drafts = engine.terms.drafts(skill.name, "harden", engine.terms.teacher.resolved, text)

    def propose(outcome: CommandOutcome) -> CommandOutcome:
        found, dropped = _find_checks(engine, skill, statements)
        dropped = unchanged | dropped
        reason = f"{len(found)} of {len(found) + len(dropped)} statements became checks"
        engine.say(*(f"stays a statement: {name}: {why}" for name, why in dropped.items()), reason)
        kept = tuple(each.name for each, _ in found)
        outcome = replace(outcome, reason=reason, kept=kept, dropped=dropped)
        if not found:
            return replace(outcome, decision="not shown")
        for statement, assertion in found:
            engine.say(f"- {statement.name}: {statement.text}")
            engine.say(f"+   {assertion['type']}: {json.dumps(assertion['value'])}")
        change = Change(file=file, old=content, new=with_assertions(content, document, found))
        applied = engine.terms.consent.apply_changes("Write this to", [change], engine.say)
        return replace(outcome, decision="accepted", applied=applied)

    plan = plan_lines(
        engine,
        Part(f"checks of {engine.terms.teacher.label}", _questions(engine, skill, statements)),
        Part(
            "its own answers, given the skill",
            _teacher_trials(engine, skill, [_case_with_checks(each, ()) for each in statements]),
        ),
    )
    start = CommandOutcome(command="cases --harden", skill=skill.name)
    return run_and_record(engine, drafts, start, plan, propose)


def _group_by_case(statements: Iterable[Statement]) -> list[list[Statement]]:
    return [list(own) for _, own in groupby(statements, key=lambda each: each.case.id)]


def _questions(engine: Engine, skill: Skill, statements: Sequence[Statement]) -> list[Trial]:
    """Return a question to the teacher for each case."""
    questions = []
    for own in _group_by_case(statements):
        case = own[0].case
        listed = "\n".join(f"{each.number}. {each.text}" for each in own)
        parts = (
            _HARDEN,
            MATERIAL + marked("skill", skill.text),
            marked("question", case.input),
            marked("statements", listed),
        )
        questions.append(engine.question(skill, f"harden-{case.id}", "\n\n".join(parts)))
    return questions


def _teacher_trials(engine: Engine, skill: Skill, cases: Sequence[Case]) -> list[Trial]:
    models = [engine.terms.teacher]
    return engine.trials(skill, cases, "with_skill", runs=FRESH_ANSWERS, models=models)


def _case_with_checks(statement: Statement, checks: tuple[Any, ...]) -> Case:
    return replace(
        statement.case,
        id=statement.name,
        checks=checks,
        models=None,
        trigger=None,
    )


def _find_checks(
    engine: Engine, skill: Skill, statements: Sequence[Statement]
) -> tuple[list[tuple[Statement, Mapping[str, Any]]], dict[str, str]]:
    """Return the statements that become assertions, and why each other one stays, by its name."""
    answers = engine.run(_questions(engine, skill, statements), "checks")
    proposed: dict[str, _ProposedCheck] = {}
    dropped = {each.name: "the teacher proposes no check by code" for each in statements}
    for of_case, (answer,) in zip(_group_by_case(statements), answers, strict=True):
        assert answer.completion is not None
        for name, check in _read_checks(answer.completion, of_case):
            if isinstance(check, Refused):
                dropped[name] = str(check)
            else:
                proposed[name] = check
    sound: list[tuple[Statement, Mapping[str, Any]]] = []
    cases: list[Case] = []
    for statement in statements:
        if proposal := proposed.get(statement.name):
            assertion = {"type": proposal.type, "value": proposal.value, "text": statement.text}
            try:
                cases.append(_validate_check(engine, statement, proposal))
            except Refused as reason:
                dropped[statement.name] = str(reason)
            else:
                sound.append((statement, assertion))
    refuted = refuted_by_teacher(engine, _teacher_trials(engine, skill, cases))
    dropped |= refuted
    kept = [pair for pair in sound if pair[0].name not in refuted]
    for statement, _ in kept:
        del dropped[statement.name]
    return kept, dropped


def _read_checks(
    reply: Completion, statements: Sequence[Statement]
) -> Iterator[tuple[str, _ProposedCheck | Refused]]:
    """Yield the check that a reply proposes for each statement, or why it is refused."""
    try:
        value = read_json_reply(complete_text(reply))
    except Refused as reason:
        yield from ((statement.name, reason) for statement in statements)
        return
    entries = value.get("checks") if isinstance(value, dict) else value
    for entry in entries if isinstance(entries, list) else ():
        check: _ProposedCheck | Refused
        number: object
        try:
            check = validate_as(_CHECK, entry)
            number = check.statement
        except Refused as reason:
            check = reason
            number = entry.get("statement") if isinstance(entry, dict) else None
        yield from (
            (statement.name, check) for statement in statements if statement.number == number
        )


def _validate_check(engine: Engine, statement: Statement, check: _ProposedCheck) -> Case:
    """Return a case with the check in place of the statement.

    Raises:
        Refused: The check does not tell right answers from wrong ones.
    """
    entry = {"input": statement.case.input, "expected": {check.type: check.value}}
    read = read_case(entry, engine.workplace.extensions)
    for problem in check_problems(check, read, engine.check_by_code):
        raise Refused(problem)
    return _case_with_checks(statement, read.checks)
