"""``cases``: validated cases for a skill, written into its ``skill_meta.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.project.messages import counted
from pytest_upskill.teacher.engine import (
    Engine,
    Part,
    Refused,
    check_models,
    complete_text,
    plan_lines,
)
from pytest_upskill.teacher.files import Change, check_clean, read_content, with_cases
from pytest_upskill.teacher.holdout import is_held_out, missing_cases, split_cases
from pytest_upskill.teacher.outcome import CommandOutcome, Review, run_and_record
from pytest_upskill.teacher.proposals import (
    BATCH,
    QUERY_BATCH,
    Proposal,
    ValidationContext,
    propose_prompt,
    read_entries,
    read_proposal,
    read_query,
    validate,
)
from pytest_upskill.teacher.sources import Source, marked, source_of
from pytest_upskill.trials.trial import Trial

_FRESH_ANSWERS = 2
"""How many new answers the teacher gives with the source at hand; all must pass."""

_SCREENING_RUNS = 3
"""Runs of each student without the skill; no lift ever counts them."""

_FIRST_SCREENING_RUN = 500
"""Index of the first screening run; other runs of a case have other indices."""

_LONGEST_QUESTION = "x" * 1000
"""Stands for a question in the upper bound of the cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Which cases to propose, and how many to keep."""

    skill: Skill
    """Names the recordings. A draft's text is compared with questions, but never sent."""
    task: str
    sources: Sequence[Source]
    count: int
    """Cases to keep; at most about twice as many are proposed."""
    queries: int = 0
    """Queries to keep, half of them for the skill."""
    held_out: int = 0
    """Minimum number of held-out cases to keep, even if more than ``count`` cases result."""

    @property
    def rounds(self) -> int:
        """Requests for proposals, at most."""
        return -(-2 * self.count // BATCH)

    @property
    def query_rounds(self) -> int:
        """Requests for queries, at most."""
        return -(-2 * self.queries // QUERY_BATCH)


@dataclass(kw_only=True)
class Kept:
    """The proposals that were kept and dropped so far."""

    cases: list[Case] = field(default_factory=list)
    entries: list[Mapping[str, Any]] = field(default_factory=list)
    """The cases as they are written into the case file, with their provenance."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Reasons by id."""
    proposed: int = 0

    @property
    def held_out(self) -> int:
        """Number of held-out cases among those with checks."""
        return sum(is_held_out(case) for case in self.cases if case.checks)

    def lacks(self, demand: Demand) -> bool:
        """Return whether more proposals with checks are needed."""
        count = sum(bool(case.checks) for case in self.cases)
        return count < demand.count or self.held_out < demand.held_out

    def queries(self, *, for_skill: bool) -> int:
        """Return the number of queries that are for the skill, or that are not."""
        return sum(bool(case.trigger and case.trigger.should is for_skill) for case in self.cases)

    def drop(self, name: str, reason: str, taken: Sequence[Case] = ()) -> None:
        """Record why a proposal is dropped, under a name that is not taken."""
        names = {*self.dropped, *(case.id for case in (*self.cases, *taken))}
        while name in names:
            name += "+"
        self.dropped[name] = reason

    def __str__(self) -> str:
        return f"kept {len(self.cases)} of {self.proposed}, {self.held_out} of them held out"


def keep_cases(engine: Engine, demand: Demand) -> Kept:
    """Ask for proposals until enough cases and queries are kept.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
    """
    kept = Kept()
    for number in range(demand.rounds):
        if not kept.lacks(demand):
            break
        entries = _entries(engine, demand, kept, number)
        if entries == []:
            break
        sound = list(_validate_entries(engine, demand, entries or (), kept))
        if not demand.held_out:
            room = demand.count - len(kept.cases)
            for _, case in sound[room:]:
                kept.drop(case.id, f"not needed: --count {demand.count} is reached")
            sound = sound[:room]
        cases = [case for _, case in sound]
        refuted = _refuted_by_teacher(engine, _teacher_trials(engine, demand, cases))
        refuted |= _refuted_by_students(engine, demand, [c for c in cases if c.id not in refuted])
        for proposal, case in sound:
            if reason := refuted.get(case.id):
                kept.drop(case.id, reason)
            else:
                kept.cases.append(case)
                kept.entries.append(_case_entry(engine, demand, proposal, case))
        engine.say(str(kept))
    _keep_queries(engine, demand, kept)
    return kept


def plan_parts(engine: Engine, demand: Demand) -> Iterator[Part]:
    """Yield the most requests that `keep_cases` can make."""
    teacher, proposed = engine.terms.teacher.label, demand.rounds * BATCH
    longest = [_LONGEST_QUESTION] * (len(demand.skill.cases) + demand.count + demand.queries)
    kept = Kept(dropped={str(number): _LONGEST_QUESTION for number in range(BATCH)})
    case = Case(id="proposal", input=_LONGEST_QUESTION, checks=())
    for key, rounds in (("proposals", demand.rounds), ("queries", demand.query_rounds)):
        question = _question(engine, demand, kept, 0, known=longest, key=key)
        yield Part(f"{key} of {teacher}", engine.with_retry(question), rounds)
    own = _teacher_trials(engine, demand, [case])
    yield Part("its own answers to them, given the sources", own, proposed)
    screening = _screening_trials(engine, demand, [case])
    yield Part("screening without the skill (not counted)", screening, proposed)


def _keep_queries(engine: Engine, demand: Demand, kept: Kept) -> None:
    """Ask for queries until half of them are for the skill, and half are not."""
    limit = {True: -(-demand.queries // 2), False: demand.queries // 2}
    for number in range(demand.query_rounds):
        have = {wanted: kept.queries(for_skill=wanted) for wanted in limit}
        entries = [] if have == limit else _entries(engine, demand, kept, number, key="queries")
        if entries == []:
            break
        for entry in entries or ():
            kept.proposed += 1
            existing = (*demand.skill.cases, *kept.cases)
            try:
                case = read_query(entry, demand.skill, existing, engine.workplace.extensions)
            except Refused as reason:
                kept.drop(f"query-{kept.proposed}", str(reason), existing)
                continue
            assert case.trigger is not None
            if have[case.trigger.should] < limit[case.trigger.should]:
                have[case.trigger.should] += 1
                kept.cases.append(case)
                provenance = {"teacher": engine.terms.teacher.resolved}
                written = {"input": case.input, "should_trigger": case.trigger.should}
                kept.entries.append({"id": case.id, **written, "provenance": provenance})


def _entries(
    engine: Engine, demand: Demand, kept: Kept, number: int, *, key: str = "proposals"
) -> list[Any] | None:
    """Ask for proposals, and return the entries of the reply; None if they cannot be read."""
    known = [case.input for case in (*demand.skill.cases, *kept.cases)]
    question = _question(engine, demand, kept, number, known=known, key=key)
    try:
        return read_entries(complete_text(engine.ask(question, f"{key} {number + 1}")), key)
    except Refused as refused:
        kept.proposed += 1
        kept.drop("reply", str(refused))
        engine.say(f"{key} {number + 1}: refused: {refused}")
        return None


def _question(
    engine: Engine, demand: Demand, kept: Kept, number: int, *, known: Sequence[str], key: str
) -> Trial:
    is_query = key == "queries"
    prompt = propose_prompt(
        demand.task,
        demand.sources,
        known,
        kept.dropped.values(),
        count=demand.queries if is_query else BATCH,
        queries=is_query,
    )
    return engine.question(demand.skill, f"{key}-{number + 1}", prompt, run=number)


def _refuted_by_teacher(engine: Engine, trials: Sequence[Trial]) -> dict[str, str]:
    """Return the ids of the cases that a fresh answer of the teacher fails, with the reason."""
    return {
        result.case: f"the teacher itself passes only {result.passes} of {len(result.runs)} times"
        for result in engine.results(trials, "the teacher's own answers")
        if result.passes < len(result.runs)
    }


def _validate_entries(
    engine: Engine, demand: Demand, entries: Sequence[Any], kept: Kept
) -> Iterator[tuple[Proposal, Case]]:
    """Yield the proposals that pass the checks by code, and drop the other entries."""
    existing = [*demand.skill.cases, *kept.cases]
    context = ValidationContext(
        skill_text=demand.skill.text,
        source_text="\n".join(source.text for source in demand.sources),
        existing=existing,
        extensions=engine.workplace.extensions,
        check=engine.check_by_code,
    )
    for entry in entries:
        kept.proposed += 1
        try:
            proposal = read_proposal(entry)
            case = validate(proposal, context)
        except Refused as reason:
            given = entry.get("id") if isinstance(entry, dict) else None
            name = given if isinstance(given, str) and given else f"proposal-{kept.proposed}"
            kept.drop(name, str(reason), existing)
            continue
        existing.append(case)
        yield proposal, case


def _teacher_trials(engine: Engine, demand: Demand, cases: Sequence[Case]) -> list[Trial]:
    files = tuple(WorkspaceFile(name=each.name, text=each.text) for each in demand.sources)
    given = [replace(case, files=files) for case in cases]
    models = [engine.terms.teacher]
    return engine.trials(demand.skill, given, "without_skill", runs=_FRESH_ANSWERS, models=models)


def _screening_trials(engine: Engine, demand: Demand, cases: Sequence[Case]) -> list[Trial]:
    return engine.trials(
        demand.skill, cases, "without_skill", runs=_SCREENING_RUNS, first_run=_FIRST_SCREENING_RUN
    )


def _refuted_by_students(engine: Engine, demand: Demand, cases: Sequence[Case]) -> dict[str, str]:
    """Return the ids of the cases that all students always pass without the skill, with reasons."""
    results = engine.results(
        _screening_trials(engine, demand, cases), "screening without the skill"
    )
    failed = {result.case for result in results if result.passes < len(result.runs)}
    return {
        result.case: f"every student passes {len(result.runs)} of {len(result.runs)} times without "
        "the skill"
        for result in results
        if result.case not in failed
    }


def _case_entry(
    engine: Engine, demand: Demand, proposal: Proposal, case: Case
) -> Mapping[str, Any]:
    """Return a kept case as it is written into the case file."""
    provenance: dict[str, Any] = {"teacher": engine.terms.teacher.resolved}
    if proposal.quote:
        quote = proposal.quote.casefold()
        for source in demand.sources:
            if quote in source.text.casefold():
                provenance["source"] = source.name
                break
        provenance["quote"] = proposal.quote
    else:
        provenance["unsourced"] = True
    provenance["screened"] = [student.resolved for student in engine.terms.students]
    return {
        "id": case.id,
        "input": case.input,
        "expected": dict(proposal.expected),
        "provenance": provenance,
    }


_LONGEST_TASK = 1000
"""Most characters of a skill's front matter, which tells the teacher what cases to write."""


def propose_cases(
    engine: Engine, skill: Skill, sources: Sequence[Source], *, count: int, queries: int
) -> CommandOutcome:
    """Propose, validate and offer cases and queries; write ``decision.json``.

    Args:
        engine: Runs the trials.
        skill: The skill with the cases that it has.
        sources: The sources of the cases; empty for the skill itself.
        count: Cases to keep.
        queries: Queries to keep.

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
    demand = demand_for(skill, sources, count=count, queries=queries)

    def propose(outcome: CommandOutcome) -> CommandOutcome:
        kept = keep_cases(engine, demand)
        drafts.write("cases.json", json.dumps({"cases": kept.entries}, indent=2) + "\n")
        outcome = replace(outcome.with_cases(kept.cases, kept.dropped), reason=str(kept))
        if not kept.cases:
            return replace(outcome, decision="not shown")
        engine.say(*_case_lines(kept))
        change = Change(file=file, old=content, new=with_cases(content, kept.entries))
        applied = terms.consent.apply_changes("Add them to", [change], engine.say)
        next_step = _missing_for_refine([*skill.cases, *kept.cases])
        return replace(outcome, decision="accepted", applied=applied, next_step=next_step)

    review = Review(plan=[*plan_lines(engine, *plan_parts(engine, demand))])
    start = CommandOutcome(command="cases", skill=skill.name)
    return run_and_record(engine, drafts, start, review, propose)


def demand_for(
    skill: Skill,
    sources: Sequence[Source],
    *,
    task: str = "",
    count: int,
    queries: int = 0,
    held_out: int = 0,
) -> Demand:
    """Return which cases to propose for a skill that exists; by default it is its own source."""
    front = marked("skill", skill.text.partition("\n---")[0][:_LONGEST_TASK])
    return Demand(
        skill=skill,
        task=f"{task}\n\nThe skill so far:\n\n{front}" if task else front,
        sources=sources or [source_of("SKILL.md", skill.text)],
        count=count,
        queries=queries,
        held_out=held_out,
    )


def _missing_for_refine(cases: Sequence[Case]) -> str:
    """Return how many cases are missing before the skill can be refined, "" if none are."""
    _, holdout = split_cases(case for case in cases if case.checks)
    if missing := missing_cases(len(holdout)):
        needs = f"'pytest-upskill refine' needs about {counted(missing, 'case')} more"
        return f"{needs}: add these with --apply, and run this again"
    return ""


def _case_lines(kept: Kept) -> Iterator[str]:
    for entry in kept.entries:
        yield f"+ {entry['id']}: {entry['input']}"
        expected = entry.get("expected") or {"should_trigger": entry["should_trigger"]}
        yield f"    {json.dumps(expected, ensure_ascii=False)}"
