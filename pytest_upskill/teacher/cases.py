"""Proposed cases and queries: which a teacher proposes, and which of them are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.teacher.engine import (
    Engine,
    Part,
    Refused,
    complete_text,
    read_list,
    validate_as,
)
from pytest_upskill.teacher.holdout import is_held_out
from pytest_upskill.teacher.proposals import Proposal, propose_prompt, read_query, validate
from pytest_upskill.teacher.sources import Source, marked, source_of
from pytest_upskill.teacher.versions import Settings
from pytest_upskill.trials.trial import Trial

BATCH = 6
"""Number of proposals in one request: more would be cut, or get careless."""

_QUERY_BATCH = 20
"""Number of queries in one request."""

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

    def rounds(self, key: str = "proposals") -> int:
        """Return the most requests for proposals or for queries."""
        wanted, batch = (self.queries, _QUERY_BATCH) if key == "queries" else (self.count, BATCH)
        return -(-2 * wanted // batch)


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

    def queries(self, *, for_skill: bool) -> int:
        """Return the number of queries that are for the skill, or that are not."""
        return sum(bool(case.trigger and case.trigger.should is for_skill) for case in self.cases)

    def keep(self, engine: Engine, case: Case, **written: Any) -> None:
        """Keep a case, given its keys in the case file and its provenance."""
        provenance = {"teacher": engine.terms.teacher.resolved} | written.pop("provenance", {})
        self.cases.append(case)
        self.entries.append(
            {"id": case.id, "input": case.input, **written, "provenance": provenance}
        )

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

    def are_cases_enough() -> bool:
        return len(kept.cases) >= demand.count and kept.held_out >= demand.held_out

    for entries in _replies(engine, demand, kept, "proposals", are_cases_enough):
        sound = [*_validate_entries(engine, demand, entries, kept)]
        room = len(sound) if demand.held_out else demand.count - len(kept.cases)
        for _, case in sound[room:]:
            kept.drop(case.id, f"not needed: --count {demand.count} is reached")
        cases = [case for _, case in sound[:room]]
        refuted = _refuted_by_teacher(engine, _teacher_trials(engine, demand, cases))
        refuted |= _refuted_by_students(engine, demand, [c for c in cases if c.id not in refuted])
        for proposal, case in sound[:room]:
            if reason := refuted.get(case.id):
                kept.drop(case.id, reason)
            else:
                provenance = _provenance(engine, demand, proposal)
                kept.keep(engine, case, expected=dict(proposal.expected), provenance=provenance)
        engine.say(str(kept))
    _keep_queries(engine, demand, kept)
    return kept


def plan_parts(engine: Engine, demand: Demand) -> Iterator[Part]:
    """Yield the most requests that `keep_cases` can make."""
    teacher, proposed = engine.terms.teacher.label, demand.rounds() * BATCH
    longest = [_LONGEST_QUESTION] * (len(demand.skill.cases) + demand.count + demand.queries)
    kept = Kept(dropped={str(number): _LONGEST_QUESTION for number in range(BATCH)})
    case = Case(id="proposal", input=_LONGEST_QUESTION, checks=())
    for key in ("proposals", "queries"):
        question = _question(engine, demand, kept, 0, known=longest, key=key)
        yield Part(f"{key} of {teacher}", engine.with_retry(question), demand.rounds(key))
    own = _teacher_trials(engine, demand, [case])
    yield Part("its own answers to them, given the sources", own, proposed)
    screening = _screening_trials(engine, demand, [case])
    yield Part("screening without the skill (not counted)", screening, proposed)


def _keep_queries(engine: Engine, demand: Demand, kept: Kept) -> None:
    """Ask for queries until half of them are for the skill, and half are not."""
    limit = {True: -(-demand.queries // 2), False: demand.queries // 2}

    def lacks(for_skill: bool) -> bool:
        return kept.queries(for_skill=for_skill) < limit[for_skill]

    for entries in _replies(engine, demand, kept, "queries", lambda: not any(map(lacks, limit))):
        for entry in entries:
            kept.proposed += 1
            existing = (*demand.skill.cases, *kept.cases)
            try:
                case = read_query(entry, demand.skill, existing, engine.workplace.extensions)
            except Refused as reason:
                kept.drop(f"query-{kept.proposed}", str(reason), existing)
                continue
            if case.trigger and lacks(case.trigger.should):
                kept.keep(engine, case, should_trigger=case.trigger.should)


def _replies(
    engine: Engine, demand: Demand, kept: Kept, key: str, is_enough: Callable[[], bool]
) -> Iterator[list[Any]]:
    """Yield the entries of each reply, until there are enough or the teacher proposes no more."""
    for number in range(demand.rounds(key)):
        if is_enough():
            return
        known = [case.input for case in (*demand.skill.cases, *kept.cases)]
        question = _question(engine, demand, kept, number, known=known, key=key)
        try:
            reply = complete_text(engine.ask(question, f"{key} {number + 1}"))
            entries: list[Any] = read_list(reply, key)
        except Refused as refused:
            kept.proposed += 1
            kept.drop("reply", str(refused))
            engine.say(f"{key} {number + 1}: refused: {refused}")
            continue
        if not entries:
            return
        yield entries


def _question(
    engine: Engine, demand: Demand, kept: Kept, number: int, *, known: Sequence[str], key: str
) -> Trial:
    prompt = propose_prompt(
        demand.task,
        demand.sources,
        known,
        kept.dropped.values(),
        count=demand.queries if key == "queries" else BATCH,
        file=key,
    )
    return engine.question(demand.skill, f"{key}-{number + 1}", prompt, run=number)


def _validate_entries(
    engine: Engine, demand: Demand, entries: Sequence[Any], kept: Kept
) -> Iterator[tuple[Proposal, Case]]:
    """Yield the proposals that pass the checks by code, and drop the other entries."""
    existing = [*demand.skill.cases, *kept.cases]
    sources = "\n".join(source.text for source in demand.sources)
    for entry in entries:
        kept.proposed += 1
        try:
            proposal = validate_as(Proposal, entry)
            case = validate(proposal, engine, existing, skill=demand.skill.text, sources=sources)
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


def _refuted_by_teacher(engine: Engine, trials: Sequence[Trial]) -> dict[str, str]:
    """Return the ids of the cases that a fresh answer of the teacher fails, with the reason."""
    return {
        result.case: f"the teacher itself passes only {result.passes} of {len(result.runs)} times"
        for result in engine.results(trials, "the teacher's own answers")
        if result.passes < len(result.runs)
    }


def _screening_trials(engine: Engine, demand: Demand, cases: Sequence[Case]) -> list[Trial]:
    return engine.trials(
        demand.skill, cases, "without_skill", runs=_SCREENING_RUNS, first_run=_FIRST_SCREENING_RUN
    )


def _refuted_by_students(engine: Engine, demand: Demand, cases: Sequence[Case]) -> dict[str, str]:
    """Return the ids of the cases that all students always pass without the skill, with reasons."""
    trials = _screening_trials(engine, demand, cases)
    results = engine.results(trials, "screening without the skill")
    failed = {result.case for result in results if result.passes < len(result.runs)}
    return {
        result.case: f"every student passes {len(result.runs)} of {len(result.runs)} times without "
        "the skill"
        for result in results
        if result.case not in failed
    }


def _provenance(engine: Engine, demand: Demand, proposal: Proposal) -> Mapping[str, Any]:
    """Return where a case is from: the source of its quote, and who was tried on it."""
    screened = {"screened": [student.resolved for student in engine.terms.students]}
    if not proposal.quote:
        return {"unsourced": True, **screened}
    quote = proposal.quote.casefold()
    named = (each.name for each in demand.sources if quote in each.text.casefold())
    source = next(named, "")
    return {**({"source": source} if source else {}), "quote": proposal.quote, **screened}


_LONGEST_TASK = 1000
"""Most characters of a skill's front matter, which tells the teacher what cases to write."""


def demand_for(skill: Skill, settings: Settings, *, is_new: bool) -> Demand:
    """Return which cases to propose for a skill; one that exists is its own source by default."""
    task, source = settings.task, source_of("task", settings.task)
    if not is_new:
        front = marked("skill", skill.text.partition("\n---")[0][:_LONGEST_TASK])
        task = f"{task}\n\nThe skill so far:\n\n{front}" if task else front
        source = source_of("SKILL.md", skill.text)
    return Demand(
        skill=skill,
        task=task,
        sources=settings.sources or [source],
        count=settings.count,
        queries=settings.queries,
    )
