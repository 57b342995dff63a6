"""``cases --harden``: prose statements of an evals file become code checks where one is sound."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from pytest_upskill.completion import Completion
from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.formats.source.json import Document, parse_json
from pytest_upskill.teacher.proposals.keep import FRESH_ANSWERS
from pytest_upskill.teacher.proposals.proposals import Proposal, Text
from pytest_upskill.teacher.proposals.statements import Statement, find_statements, with_assertions
from pytest_upskill.teacher.proposals.validation import Dropped, check_problems, read_case
from pytest_upskill.teacher.work.conclusion import DRY_RUN, conclude
from pytest_upskill.teacher.work.consent import Change, check_clean, replace_files
from pytest_upskill.teacher.work.decision import Decision, Drafts
from pytest_upskill.teacher.work.engine import Engine, TeacherError
from pytest_upskill.teacher.work.measure import teacher_trial, trials_of
from pytest_upskill.teacher.work.place import place
from pytest_upskill.teacher.work.plan import Part, check_models, plan_lines
from pytest_upskill.teacher.work.prompts import MATERIAL, marked
from pytest_upskill.teacher.work.reply import MAX_TOKENS, BadReply, json_of, whole_text
from pytest_upskill.teacher.work.terms import Terms

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
class _Hardened:
    """A check that a teacher proposes for a statement."""

    statement: int
    type: Literal["contains", "contains_any", "regex"]
    value: Text | Annotated[tuple[Text, ...], Field(min_length=1)]
    reference: Text
    alternatives: Annotated[tuple[Text, ...], Field(min_length=2)]
    wrong: Annotated[tuple[Text, ...], Field(min_length=1)]


_CHECK = TypeAdapter(_Hardened)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order of a ``cases --harden`` command."""

    skill: Skill
    terms: Terms


def harden(engine: Engine, order: Order) -> Decision:
    """Propose, validate and offer code checks for statements; write ``decision.json``.

    Raises:
        TeacherError: The command cannot run as it was given.
    """
    file = order.skill.case_file
    if file.suffix != ".json" or file.name == "skill_meta.json":
        raise TeacherError(f"{file}: --harden changes evals files in JSON: name a skill with one")
    check_models(engine, order.terms.teacher, (), order.terms.limits)
    if order.terms.consent.apply:
        check_clean(file)
    content = file.read_bytes()
    document = parse_json(content.decode("utf-8-sig"))
    statements, stay = find_statements(order.skill.cases, document)
    drafts = Drafts(
        order.terms.state / "drafts",
        order.skill.name,
        "harden",
        order.terms.teacher.resolved,
        content.decode("utf-8-sig"),
    )
    start = order.terms.interrupted("cases --harden", order.skill.name)

    def work(decision: Decision) -> Decision:
        asked = list(_questions(order, statements))
        for line in plan_lines(engine, _parts(order, asked, statements)):
            engine.say(line)
        if order.terms.dry_run:
            return replace(decision, reason=DRY_RUN)
        found, dropped = _validated(engine, order, asked, statements)
        dropped = stay | dropped
        for name, reason in dropped.items():
            engine.say(f"stays a statement: {name}: {reason}")
        reason = f"{len(found)} of {len(found) + len(dropped)} statements became checks"
        engine.say(reason)
        kept = tuple(each.name for each, _ in found)
        decision = replace(decision, reason=reason, kept=kept, dropped=dropped)
        if not found:
            return replace(decision, decision="not shown")
        decision = replace(decision, decision="accepted")
        return replace(decision, applied=_offer(engine, order, content, document, found))

    return conclude(engine, drafts, start, work, dry_run=order.terms.dry_run)


def _questions(
    order: Order, statements: Sequence[Statement]
) -> Iterator[tuple[Case, list[Statement], str]]:
    """Yield each case with its statements and the question to the teacher."""
    for case in dict.fromkeys(each.case.id for each in statements):
        own = [each for each in statements if each.case.id == case]
        listed = "\n".join(f"{each.number}. {each.text}" for each in own)
        parts = (
            _HARDEN,
            MATERIAL + marked("skill", order.skill.text),
            marked("question", own[0].case.input),
            marked("statements", listed),
        )
        yield own[0].case, own, "\n\n".join(parts)


def _parts(
    order: Order,
    asked: Sequence[tuple[Case, list[Statement], str]],
    statements: Sequence[Statement],
) -> Iterator[Part]:
    label = order.terms.teacher.label
    trials = tuple(_ask(order, case, prompt) for case, _, prompt in asked)
    yield Part(what=f"checks of {label}", trials=trials)
    own = [_with_checks(each, ()) for each in statements]
    fresh = _fresh(order, own, max_tokens=4096)
    yield Part(what="its own answers, given the skill", trials=tuple(fresh))


def _ask(order: Order, case: Case, prompt: str) -> Any:
    what = f"harden-{case.id}"
    return teacher_trial(
        order.skill, order.terms.teacher, what=what, prompt=prompt, max_tokens=MAX_TOKENS
    )


def _fresh(order: Order, cases: Sequence[Case], *, max_tokens: int) -> list[Any]:
    return trials_of(
        order.skill,
        cases,
        [order.terms.teacher],
        arm="with_skill",
        runs=FRESH_ANSWERS,
        max_tokens=max_tokens,
    )


def _with_checks(statement: Statement, checks: tuple[Any, ...]) -> Case:
    return replace(
        statement.case,
        id=statement.name,
        checks=checks,
        models=None,
        statement_numbers=(),
        trigger=None,
    )


def _validated(
    engine: Engine,
    order: Order,
    asked: Sequence[tuple[Case, list[Statement], str]],
    statements: Sequence[Statement],
) -> tuple[list[tuple[Statement, Mapping[str, Any]]], dict[str, str]]:
    """Return the statements with their checks, and why the others have none."""
    answers = engine.run([_ask(order, case, prompt) for case, _, prompt in asked], "checks")
    proposed: dict[str, _Hardened] = {}
    dropped = {each.name: "the teacher proposes no check by code" for each in statements}
    for (_, own, _), (answer,) in zip(asked, answers, strict=True):
        assert answer.completion is not None
        for number, check in _read(answer.completion, own, dropped):
            proposed |= {each.name: check for each in own if each.number == number}
    sound: list[tuple[Statement, Mapping[str, Any], Case]] = []
    for statement in statements:
        if statement.name not in proposed:
            continue
        try:
            entry, case = _checked(engine, statement, proposed[statement.name])
        except Dropped as reason:
            dropped[statement.name] = str(reason)
        else:
            sound.append((statement, entry, case))
    fresh = _fresh(order, [case for *_, case in sound], max_tokens=engine.workplace.max_tokens)
    found = []
    for (statement, entry, _), result in zip(
        sound, engine.results(fresh, "the teacher's own answers"), strict=True
    ):
        if result.passes < FRESH_ANSWERS:
            passes = f"{result.passes} of {FRESH_ANSWERS}"
            dropped[statement.name] = f"the teacher itself passes only {passes} times"
        else:
            found.append((statement, entry))
            del dropped[statement.name]
    return found, dropped


def _read(
    reply: Completion, own: Sequence[Statement], dropped: dict[str, str]
) -> Iterator[tuple[int, _Hardened]]:
    """Yield the checks of a reply by the number of the statement; note why others are none."""
    try:
        value = json_of(whole_text(reply))
    except BadReply as error:
        dropped |= {each.name: str(error) for each in own}
        return
    entries = value.get("checks") if isinstance(value, dict) else value
    for entry in entries if isinstance(entries, list) else ():
        try:
            check = _CHECK.validate_python(entry)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            number = entry.get("statement") if isinstance(entry, dict) else None
            where = ".".join(map(str, first["loc"]))
            names = [each.name for each in own if each.number == number]
            dropped |= dict.fromkeys(names, f"malformed: {where}: {first['msg']}")
        else:
            yield check.statement, check


def _checked(
    engine: Engine, statement: Statement, check: _Hardened
) -> tuple[Mapping[str, Any], Case]:
    """Return the assertion for the file and the case that it makes.

    Raises:
        Dropped: It does not tell right answers from wrong ones.
    """
    value = list(check.value) if isinstance(check.value, tuple) else check.value
    entry = {"input": statement.case.input, "expected": {check.type: value}}
    read = read_case(entry, engine.workplace.extensions)
    proposal = Proposal(
        input=statement.case.input,
        expected={check.type: value},
        reference=check.reference,
        alternatives=check.alternatives,
        wrong=check.wrong,
    )
    for problem in check_problems(proposal, read, engine.checks):
        raise Dropped(problem)
    assertion = {"type": check.type, "value": value, "text": statement.text}
    return assertion, _with_checks(statement, read.checks)


def _offer(
    engine: Engine,
    order: Order,
    content: bytes,
    document: Document,
    found: Sequence[tuple[Statement, Mapping[str, Any]]],
) -> bool:
    """Write the checks in the place of their statements if somebody agrees."""
    file = order.skill.case_file
    new = with_assertions(content, document, found)
    for statement, assertion in found:
        engine.say(f"- {statement.name}: {statement.text}")
        engine.say(f"+   {assertion['type']}: {json.dumps(assertion['value'])}")
    if not order.terms.consent.to_write(f"Write this to {place(file)}?", [file], engine.say):
        return False
    replace_files([Change(file=file, old=content, new=new)])
    engine.say(f"written: {place(file)}")
    return True
