"""Decide which proposals to keep: those that neither code, the teacher nor the students refute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.model import Model
from pytest_upskill.teacher.proof.holdout import is_held_out
from pytest_upskill.teacher.proposals.proposals import (
    BATCH,
    Malformed,
    Proposal,
    propose_prompt,
    read_proposals,
)
from pytest_upskill.teacher.proposals.validation import Dropped, Surroundings, validate
from pytest_upskill.teacher.sources.read import Source
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.measure import SCREENING, teacher_trial, trials_of
from pytest_upskill.teacher.work.reply import MAX_TOKENS, BadReply, whole_text

FRESH_ANSWERS = 2
"""Answers of the teacher, given the source, all of which must pass."""

SCREENING_RUNS = 3
"""Runs of each student without the skill; these are never counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What cases are wanted."""

    skill: Skill
    """Names the recordings; a draft's text is compared with questions, and never shown."""
    task: str
    sources: tuple[Source, ...]
    teacher: Model
    students: tuple[Model, ...]
    existing: tuple[Case, ...]
    count: int
    """Cases to keep; at most about twice as many are proposed."""
    held_out: int = 0
    """Minimum number of held-out cases to keep, even if more than ``count`` cases result."""

    @property
    def rounds(self) -> int:
        """Requests for proposals, at most."""
        return -(-2 * self.count // BATCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The kept and the dropped proposals."""

    cases: tuple[Case, ...]
    entries: tuple[Mapping[str, Any], ...]
    """The cases as they are written into the case file, with their provenance."""
    dropped: Mapping[str, str]
    """Reasons by id."""
    proposed: int


@dataclass(kw_only=True)
class _Progress:
    """What has been kept and dropped so far."""

    kept: dict[str, tuple[Case, Mapping[str, Any]]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    proposed: int = 0

    def enough(self, demand: Demand) -> bool:
        """Return whether no more proposals are needed."""
        held_out = sum(map(is_held_out, self.kept))
        return len(self.kept) >= demand.count and held_out >= demand.held_out

    def drop(self, name: str, reason: str, taken: Iterable[str] = ()) -> None:
        """Note why a proposal is dropped, under a name that no other has."""
        while name in {*self.dropped, *self.kept, *taken}:
            name += "+"
        self.dropped[name] = reason


def keep_cases(engine: Engine, demand: Demand) -> Kept:
    """Ask for proposals until enough are kept.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
    """
    so_far = _Progress()
    for number in range(demand.rounds):
        if so_far.enough(demand):
            break
        proposals = _ask(engine, demand, so_far, number)
        if not proposals:
            break
        sound = list(_sound(engine, demand, proposals, so_far))
        if not demand.held_out:
            room = demand.count - len(so_far.kept)
            for _, case in sound[room:]:
                so_far.drop(case.id, f"not needed: --count {demand.count} is reached")
            sound = sound[:room]
        cases = [case for _, case in sound]
        refuted = _refuted_by_teacher(engine, demand, cases)
        refuted |= _known_to_students(engine, demand, [c for c in cases if c.id not in refuted])
        for proposal, case in sound:
            if reason := refuted.get(case.id):
                so_far.drop(case.id, reason)
            else:
                so_far.kept[case.id] = case, _entry(demand, proposal, case)
        engine.say(f"kept {len(so_far.kept)} of {so_far.proposed}")
    return Kept(
        cases=tuple(case for case, _ in so_far.kept.values()),
        entries=tuple(entry for _, entry in so_far.kept.values()),
        dropped=so_far.dropped,
        proposed=so_far.proposed,
    )


def _ask(
    engine: Engine, demand: Demand, so_far: _Progress, number: int
) -> list[Proposal | Malformed]:
    known = [case.input for case in (*demand.existing, *(case for case, _ in so_far.kept.values()))]
    trial = teacher_trial(
        demand.skill,
        demand.teacher,
        what=f"proposals-{number + 1}",
        prompt=propose_prompt(demand.task, demand.sources, known, count=BATCH),
        run=number,
        max_tokens=MAX_TOKENS,
    )
    ((answer,),) = engine.run([trial], f"proposals {number + 1}")
    assert answer.completion is not None
    try:
        return read_proposals(whole_text(answer.completion))
    except BadReply as error:
        return [Malformed(name="reply", reason=str(error))]


def _sound(
    engine: Engine,
    demand: Demand,
    proposals: Sequence[Proposal | Malformed],
    so_far: _Progress,
) -> Iterable[tuple[Proposal, Case]]:
    """Yield the proposals that pass the checks by code, and drop the others."""
    around = Surroundings(
        skill_text=demand.skill.text,
        source_text="\n".join(source.text for source in demand.sources),
        existing=[*demand.existing, *(case for case, _ in so_far.kept.values())],
        extensions=engine.workplace.extensions,
        check=engine.checks,
    )
    for proposal in proposals:
        so_far.proposed += 1
        if isinstance(proposal, Malformed):
            so_far.drop(proposal.name, proposal.reason)
            continue
        try:
            case = validate(proposal, around)
        except Dropped as reason:
            name = proposal.id or f"proposal-{so_far.proposed}"
            so_far.drop(name, str(reason), [case.id for case in around.existing])
            continue
        around = replace(around, existing=[*around.existing, case])
        yield proposal, case


def _refuted_by_teacher(engine: Engine, demand: Demand, cases: Sequence[Case]) -> dict[str, str]:
    """Return the cases that fresh answers of the teacher, given the sources, do not pass."""
    files = {source.name: source.text for source in demand.sources}
    trials = trials_of(
        demand.skill,
        [replace(case, files=files) for case in cases],
        [demand.teacher],
        arm="without_skill",
        runs=FRESH_ANSWERS,
        max_tokens=engine.workplace.max_tokens,
    )
    results = engine.results(trials, "the teacher's own answers")
    return {
        result.case: f"the teacher itself passes only {result.passes} of {FRESH_ANSWERS} times"
        for result in results
        if result.passes < len(result.runs)
    }


def _known_to_students(engine: Engine, demand: Demand, cases: Sequence[Case]) -> dict[str, str]:
    """Return the cases that every student always passes without the skill."""
    trials = trials_of(
        demand.skill,
        cases,
        demand.students,
        arm="without_skill",
        runs=SCREENING_RUNS,
        first_run=SCREENING,
        max_tokens=engine.workplace.max_tokens,
    )
    results = engine.results(trials, "screening without the skill")
    known = {result.case: len(result.runs) for result in results}
    for result in results:
        if result.passes < len(result.runs):
            known.pop(result.case, None)
    return {
        case: f"every student passes {runs} of {runs} times without the skill"
        for case, runs in known.items()
    }


def _entry(demand: Demand, proposal: Proposal, case: Case) -> Mapping[str, Any]:
    folded = proposal.quote.casefold()
    source = next((s.name for s in demand.sources if folded and folded in s.text.casefold()), "")
    provenance: dict[str, Any] = {"teacher": demand.teacher.resolved}
    if source:
        provenance["source"] = source
    provenance |= {"quote": proposal.quote} if proposal.quote else {"unsourced": True}
    provenance["screened"] = [student.resolved for student in demand.students]
    return {
        "id": case.id,
        "input": case.input,
        "expected": dict(proposal.expected),
        "provenance": provenance,
    }
