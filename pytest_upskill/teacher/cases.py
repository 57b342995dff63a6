"""``cases``: validated cases for a skill, written into its ``skill_meta.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_upskill import CASE_FILE
from pytest_upskill.cells.wording import counted
from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.repository.atomic_write import write_whole
from pytest_upskill.teacher.proof.holdout import is_held_out, missing_cases
from pytest_upskill.teacher.proposals.case_file import with_cases
from pytest_upskill.teacher.proposals.keep import (
    FRESH_ANSWERS,
    SCREENING_RUNS,
    Demand,
    Kept,
    keep_cases,
)
from pytest_upskill.teacher.proposals.proposals import BATCH, propose_prompt
from pytest_upskill.teacher.sources.read import BUDGET, Source, source_of
from pytest_upskill.teacher.work.conclusion import DRY_RUN, conclude
from pytest_upskill.teacher.work.consent import (
    Change,
    check_clean,
    check_sources,
    replace_files,
)
from pytest_upskill.teacher.work.decision import Decision, Drafts
from pytest_upskill.teacher.work.engine import Engine, TeacherError
from pytest_upskill.teacher.work.measure import teacher_trial, trials_of
from pytest_upskill.teacher.work.place import place
from pytest_upskill.teacher.work.plan import Part, check_models, plan_lines
from pytest_upskill.teacher.work.prompts import marked
from pytest_upskill.teacher.work.reply import MAX_TOKENS
from pytest_upskill.teacher.work.terms import Terms

_LONGEST_CASE = 1000
"""Characters of a question, to bound its price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order of a ``cases`` command."""

    skill: Skill
    sources: tuple[Source, ...]
    """Empty for the skill itself."""
    count: int
    terms: Terms


def propose_cases(engine: Engine, order: Order) -> Decision:
    """Propose, validate and offer cases; write ``decision.json``.

    Raises:
        TeacherError: The command cannot run as it was given.
    """
    skill, content = order.skill, _content(order.skill.folder / CASE_FILE)
    drafts = Drafts(
        order.terms.state / "drafts",
        skill.name,
        "cases",
        str(skill.folder),
        *order.terms.names,
        *(source.text for source in order.sources),
    )
    start = order.terms.interrupted("cases", skill.name)
    check_models(engine, order.terms.teacher, order.terms.students, order.terms.limits)
    if order.terms.consent.apply:
        check_clean(skill.folder / CASE_FILE)
    if not order.terms.dry_run:
        check_sources(engine, order.sources, order.terms.teacher.label, order.terms.consent, drafts)
    demand = Demand(
        skill=skill,
        task=marked("skill", skill.text.partition("\n---")[0][:_LONGEST_CASE]),
        sources=order.sources or (source_of("SKILL.md", skill.text, budget=BUDGET),),
        teacher=order.terms.teacher,
        students=order.terms.students,
        existing=skill.cases,
        count=order.count,
    )

    def work(decision: Decision) -> Decision:
        for line in plan_lines(engine, plan_parts(engine, demand)):
            engine.say(line)
        if order.terms.dry_run:
            return replace(decision, reason=DRY_RUN)
        kept = keep_cases(engine, demand)
        for line in (*told(kept), *_what_refine_lacks((*skill.cases, *kept.cases))):
            engine.say(line)
        drafts.write("cases.json", json.dumps({"cases": kept.entries}, indent=2) + "\n")
        return _offered(engine, order, kept, content, decision)

    return conclude(engine, drafts, start, work, dry_run=order.terms.dry_run)


def plan_parts(engine: Engine, demand: Demand) -> Iterator[Part]:
    """Yield the most requests that proposing cases can take."""
    tokens = engine.workplace.max_tokens
    known = ["x" * _LONGEST_CASE] * (len(demand.existing) + demand.count)
    ask = teacher_trial(
        demand.skill,
        demand.teacher,
        what="proposals",
        prompt=propose_prompt(demand.task, demand.sources, known, count=BATCH),
        max_tokens=MAX_TOKENS,
    )
    files = {source.name: source.text for source in demand.sources}
    case = Case(id="proposal", input="x" * _LONGEST_CASE, checks=())
    (own,) = trials_of(
        demand.skill,
        [replace(case, files=files)],
        [demand.teacher],
        arm="without_skill",
        runs=FRESH_ANSWERS,
        max_tokens=tokens,
    )
    screening = trials_of(
        demand.skill,
        [case],
        demand.students,
        arm="without_skill",
        runs=SCREENING_RUNS,
        max_tokens=tokens,
    )
    proposed = demand.rounds * BATCH
    yield Part(what=f"proposals of {demand.teacher.label}", trials=(ask,), times=demand.rounds)
    yield Part(what="its own answers to them, given the sources", trials=(own,), times=proposed)
    yield Part(
        what="screening without the skill (not counted)", trials=tuple(screening), times=proposed
    )


def told(kept: Kept) -> Iterator[str]:
    """Yield a line about each proposal: kept, or dropped with the reason."""
    for name, reason in kept.dropped.items():
        yield f"dropped {name}: {reason}"
    held_out = sum(is_held_out(case.id) for case in kept.cases)
    yield f"kept {len(kept.cases)} of {kept.proposed}, {held_out} of them held out"


def _what_refine_lacks(cases: Iterable[Case]) -> Iterator[str]:
    """Yield how many cases are missing before the skill can be refined, if any are."""
    if missing := missing_cases(sum(is_held_out(case.id) for case in cases)):
        yield f"'pytest-upskill refine' needs about {counted(missing, 'case')} more: run this again"


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


def _offered(
    engine: Engine, order: Order, kept: Kept, content: bytes | None, decision: Decision
) -> Decision:
    """Offer the kept cases, and write them if somebody agrees."""
    decision = replace(
        decision,
        kept=tuple(case.id for case in kept.cases),
        dropped=kept.dropped,
        train=tuple(case.id for case in kept.cases if not is_held_out(case.id)),
        holdout=tuple(case.id for case in kept.cases if is_held_out(case.id)),
    )
    reason = f"kept {len(kept.cases)} of {kept.proposed}"
    if not kept.cases:
        return replace(decision, decision="not shown", reason=reason)
    file = order.skill.folder / CASE_FILE
    for case, entry in zip(kept.cases, kept.entries, strict=True):
        engine.say(f"+ {case.id}: {case.input}")
        engine.say(f"    {json.dumps(entry['expected'], ensure_ascii=False)}")
    decision = replace(decision, decision="accepted", reason=reason)
    if not order.terms.consent.to_write(f"Add them to {place(file)}?", [file], engine.say):
        return decision
    _write(file, content, kept)
    engine.say(f"written: {place(file)}")
    return replace(decision, applied=True)


def _write(file: Path, content: bytes | None, kept: Kept) -> None:
    """Add cases to a case file, which is made if there was none.

    Raises:
        TeacherError: It cannot be written, is not committed, or has changed meanwhile.
    """
    new = with_cases(content, kept.entries)
    if content is not None:
        replace_files([Change(file=file, old=content, new=new)])
        return
    if file.exists():
        raise TeacherError(f"{file}: has changed in the meantime: start again")
    try:
        write_whole(file, new, mode=0o666)
    except OSError as error:
        raise TeacherError(f"{file}: cannot be written: {error.strerror}") from None
