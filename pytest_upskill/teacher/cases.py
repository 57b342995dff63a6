"""``cases``: validated cases for a skill, written into its ``skill_meta.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_upskill import CASE_FILE
from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.sanitize.plural import counted
from pytest_upskill.teacher.proof.holdout import missing_cases, split_cases
from pytest_upskill.teacher.proof.outcome import CommandOutcome, run_and_record
from pytest_upskill.teacher.proposals.keep import Demand, Kept, keep_cases, plan_parts
from pytest_upskill.teacher.sources.read import Source, source_of
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.files import Change, check_clean, read_content, with_cases
from pytest_upskill.teacher.work.marks import marked
from pytest_upskill.teacher.work.plan import check_models, plan_lines

_LONGEST_TASK = 1000
"""Most characters of a skill's front matter, which tells the teacher what cases to write."""


def propose_cases(
    engine: Engine, skill: Skill, sources: Sequence[Source], *, count: int
) -> CommandOutcome:
    """Propose, validate and offer cases; write ``decision.json``.

    Args:
        engine: Runs the trials.
        skill: The skill with the cases that it has.
        sources: The sources of the cases; empty for the skill itself.
        count: Cases to keep.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    terms, file = engine.terms, skill.folder / CASE_FILE
    content = read_content(file)
    given = (*terms.names, *(source.text for source in sources))
    drafts = terms.drafts(skill.name, "cases", str(skill.folder), *given)
    check_models(engine)
    if terms.consent.apply:
        check_clean(file)
    terms.check_sources(sources, drafts, engine.say)
    demand = Demand(
        skill=skill,
        task=marked("skill", skill.text.partition("\n---")[0][:_LONGEST_TASK]),
        sources=sources or [source_of("SKILL.md", skill.text)],
        count=count,
    )

    def propose(outcome: CommandOutcome) -> CommandOutcome:
        kept = keep_cases(engine, demand)
        engine.say(*kept.summary_lines(), *_missing_for_refine([*skill.cases, *kept.cases]))
        drafts.write("cases.json", json.dumps({"cases": kept.entries}, indent=2) + "\n")
        outcome = replace(outcome.with_cases(kept.cases, kept.dropped), reason=str(kept))
        if not kept.cases:
            return replace(outcome, decision="not shown")
        engine.say(*_case_lines(kept))
        change = Change(file=file, old=content, new=with_cases(content, kept.entries))
        applied = terms.consent.apply_changes("Add them to", [change], engine.say)
        return replace(outcome, decision="accepted", applied=applied)

    plan = plan_lines(engine, *plan_parts(engine, demand))
    return run_and_record(
        engine, drafts, CommandOutcome(command="cases", skill=skill.name), plan, propose
    )


def _missing_for_refine(cases: Sequence[Case]) -> Iterator[str]:
    """Yield how many cases are missing before the skill can be refined, if any are."""
    _, holdout = split_cases(cases)
    if missing := missing_cases(len(holdout)):
        yield f"'pytest-upskill refine' needs about {counted(missing, 'case')} more: run this again"


def _case_lines(kept: Kept) -> Iterator[str]:
    for entry in kept.entries:
        yield f"+ {entry['id']}: {entry['input']}"
        yield f"    {json.dumps(entry['expected'], ensure_ascii=False)}"
