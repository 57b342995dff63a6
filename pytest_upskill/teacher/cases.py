"""Proposed cases and queries: which a teacher proposes, and which of them are kept."""

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from pytest_upskill.cases.skill import Case
from pytest_upskill.cases.skill_meta.expected import Expected, keys_of
from pytest_upskill.cases.skill_meta.reader import read_cases
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.checks import CheckError
from pytest_upskill.checks.extensions import Extensions
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.checks.text import TextCheck
from pytest_upskill.grading.grade import text_checks_of
from pytest_upskill.teacher.acceptance import MIN_HELD_OUT, is_held_out
from pytest_upskill.teacher.additions import copies_words
from pytest_upskill.teacher.engine import Engine, Refused, read_part, validate_as
from pytest_upskill.teacher.sources import marked_sources, prompt
from pytest_upskill.teacher.versions import Task
from pytest_upskill.trials.trial import Trial

BATCH = 6
"""Number of proposals in one request: more would be cut, or get careless."""

QUERY_BATCH = 20
"""Number of queries in one request."""

_FRESH_ANSWERS = 2
"""How many new answers the teacher gives with the source at hand; all must pass."""

_SCREENING_RUNS = 3
"""Runs of each student without the skill; no lift ever counts them."""

_FIRST_SCREENING_RUN = 500
"""Index of the first screening run; other runs of a case have other indices."""


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

    def drop(self, name: str, reason: str, taken: Sequence[Case] = ()) -> None:
        """Record why a proposal is dropped, under a name that is not taken."""
        names = {*self.dropped, *(case.id for case in (*self.cases, *taken))}
        while name in names:
            name += "+"
        self.dropped[name] = reason

    def __str__(self) -> str:
        return f"kept {len(self.cases)} of {self.proposed}, {self.held_out} of them held out"


def question_rounds(wanted: int, batch: int) -> int:
    """Return the most requests for so many cases or queries, of which half may be dropped."""
    return ceil(2 * wanted / batch)


def keep_cases(engine: Engine, task: Task) -> Kept:
    """Ask for proposals until enough cases are kept, then for queries.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
    """
    kept, count, queries = Kept(), task.settings.count, task.settings.queries
    lacking = MIN_HELD_OUT - len(task.holdout) if task.proposes else 0

    def is_enough() -> bool:
        return len(kept.cases) >= count and kept.held_out >= lacking

    proposals = _Asked("proposals", BATCH, question_rounds(count, BATCH), read_proposal)
    for sound in _replies(engine, task, kept, proposals, is_enough):
        room = len(sound) if task.proposes else count - len(kept.cases)
        for case, _ in sound[room:]:
            kept.drop(case.id, f"not needed: --count {count} is reached")
        refuted = _refuted(engine, task, [case for case, _ in sound[:room]])
        for case, entry in sound[:room]:
            if reason := refuted.get(case.id):
                kept.drop(case.id, reason)
            else:
                kept.cases.append(case)
                kept.entries.append(entry)
        engine.say(str(kept))
    # Half of them are for the skill, and half are not.
    wanted = {True: ceil(queries / 2), False: queries // 2}
    asked = _Asked("queries", queries, question_rounds(queries, QUERY_BATCH), _read_query)
    for sound in _replies(engine, task, kept, asked, lambda: not any(wanted.values())):
        for case, entry in sound:
            if wanted[entry["should_trigger"]]:
                wanted[entry["should_trigger"]] -= 1
                kept.cases.append(case)
                kept.entries.append(entry)
    return kept


Sound = tuple[Case, dict[str, Any]]
"""A case that passes the checks by code, and its entry in the case file, with its provenance."""


class _Asked(NamedTuple):
    """What a teacher is asked for, in one request after another."""

    key: str
    """The prompt's name, and the key of the list in a reply."""
    per_request: int
    """How many a request asks for."""
    rounds: int
    """The most requests."""
    read: Callable[[Engine, Task, object, Sequence[Case]], Sound]
    """Reads an entry of the list; may raise `Refused`."""


def _replies(
    engine: Engine, task: Task, kept: Kept, asked: _Asked, is_enough: Callable[[], bool]
) -> Iterator[list[Sound]]:
    """Yield the sound cases of each reply, until there are enough or the teacher has no more."""
    for number in range(asked.rounds):
        if is_enough():
            return
        existing = [*task.skill.cases, *kept.cases]
        text = prompt(
            asked.key,
            task=task.subject,
            count=asked.per_request,
            keys=KEYS,
            sources=marked_sources(task.sources),
            known="\n".join(f"- {case.input}" for case in existing),
            dropped=[*kept.dropped.values()][-12:],
        )
        name = f"{asked.key} {number + 1}"
        question = engine.question(task.skill, name.replace(" ", "-"), text, run=number)
        try:
            entries: list[Any] = read_part(engine.ask(question, name), asked.key)
        except Refused as refused:
            kept.proposed += 1
            kept.drop("reply", str(refused))
            engine.say(f"{name}: refused: {refused}")
            continue
        if not entries:
            return
        sound: list[Sound] = []
        for entry in entries:
            kept.proposed += 1
            try:
                case, written = asked.read(engine, task, entry, existing)
                written["provenance"]["teacher"] = engine.teacher.resolved
                sound.append((case, {"id": case.id, **written}))
                existing.append(case)
            except Refused as reason:
                given = entry.get("id") if isinstance(entry, dict) else None
                id_ = given if isinstance(given, str) and given else f"proposal-{kept.proposed}"
                kept.drop(id_, str(reason), existing)
        yield sound


def teacher_trials(engine: Engine, task: Task, cases: Sequence[Case]) -> list[Trial]:
    """Return the trials of cases on the teacher, with the sources at hand."""
    files = tuple(WorkspaceFile(name=each.name, text=each.text) for each in task.sources)
    given = [replace(case, files=files) for case in cases]
    models = [engine.teacher]
    return engine.trials(task.skill, given, "without_skill", runs=_FRESH_ANSWERS, models=models)


def screening_trials(engine: Engine, task: Task, cases: Sequence[Case]) -> list[Trial]:
    """Return the trials of cases on the students without the skill."""
    return engine.trials(
        task.skill, cases, "without_skill", runs=_SCREENING_RUNS, first_run=_FIRST_SCREENING_RUN
    )


def _refuted(engine: Engine, task: Task, cases: Sequence[Case]) -> dict[str, str]:
    """Return the ids of the cases against which fresh answers speak, each with the reason."""
    results = engine.results(teacher_trials(engine, task, cases), "the teacher's own answers")
    refuted = {
        each.case: f"the teacher itself passes only {each.passes} of {len(each.runs)} times"
        for each in results
        if each.passes < len(each.runs)
    }
    left = [case for case in cases if case.id not in refuted]
    results = engine.results(screening_trials(engine, task, left), "screening without the skill")
    failed = {each.case for each in results if each.passes < len(each.runs)}
    passed = {each.case for each in results} - failed
    return refuted | dict.fromkeys(passed, "every student passes every time without the skill")


Text = Annotated[str, Field(min_length=1)]

KEYS = "; ".join(
    f'"{key}" ({mark.kind.for_teacher})'
    for key, (_, mark) in keys_of(Expected).items()
    if mark.kind.for_teacher
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proposal:
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


def _read_query(engine: Engine, task: Task, entry: object, existing: Sequence[Case]) -> Sound:
    """Read an entry of a reply as a case about which skill is chosen.

    Raises:
        Refused: It is malformed, or says too much.
    """
    skill, read = task.skill, validate_as(_Query, entry)
    written = {"input": read.query, "should_trigger": read.for_skill}
    case = _read_case(written, engine.workplace.extensions)
    if skill.name.casefold() in read.query.casefold():
        raise Refused("names the skill")
    if copies_words(skill.description, read.query):
        raise Refused("repeats 8 words of the description")
    _refuse_repetition(case, existing)
    return case, {**written, "provenance": {}}


def read_proposal(engine: Engine, task: Task, entry: object, existing: Sequence[Case]) -> Sound:
    """Read an entry of a reply as a case with checks by code.

    Args:
        engine: Runs the checks.
        task: Knows the text of the skill and the sources.
        entry: The entry.
        existing: The cases of the skill, and the proposals that were accepted so far.

    Raises:
        Refused: It is malformed, or something rules it out.
    """
    proposal = validate_as(_Proposal, entry)
    written: dict[str, Any] = {"input": proposal.input, "expected": dict(proposal.expected)}
    named = {"id": proposal.id, **written} if proposal.id else written
    case = _read_case(named, engine.workplace.extensions)
    quote = _normalize(proposal.quote)
    source = next((each.name for each in task.sources if quote in _normalize(each.text)), None)
    # Questions that differ in a name only have other answers.
    same = [e for e in existing if e.id == case.id or _accepts(e, proposal.reference, engine)]
    if source is None:
        raise Refused(f"its quote is not in the sources: {proposal.quote[:60]!r}")
    _refuse_case(case, task.skill.text)
    _refuse_repetition(case, same)
    _refuse_checks(proposal, case, engine)
    of_source = {"source": source, "quote": proposal.quote} if quote else {"unsourced": True}
    screened = [student.resolved for student in engine.students]
    return case, {**written, "provenance": {**of_source, "screened": screened}}


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


def _refuse_case(case: Case, skill: str) -> None:
    """Raise Refused if a case cannot be kept, whatever its answers are."""
    if case.agent_key:
        raise Refused(f"'{case.agent_key}' needs an agent")
    if case.judge_checks:
        raise Refused("needs a judge: only checks by code are kept")
    if all(isinstance(check, TextCheck) and check.is_negative for check in case.checks):
        raise Refused("has no positive check: an empty answer would pass")
    if copies_words(skill, case.input):
        raise Refused("its question appears in the skill: 8 words in a row are the same")


def _refuse_checks(proposal: _Proposal, case: Case, engine: Engine) -> None:
    """Raise Refused if a case does not distinguish right answers from wrong ones."""
    try:
        for check in text_checks_of(case):
            if not check.is_negative and check.check(case.input).passed:
                raise Refused(f"the question gives the answer away: it passes {check.name}")
        if failed := engine.failures(case, proposal.reference):
            raise Refused(f"its own reference answer fails: {failed[0]}")
        for answer in proposal.alternatives:
            if failed := engine.failures(case, answer):
                raise Refused(f"too literal: another right answer fails: {failed[0]}")
        for answer in (*EMPTY_ANSWERS, case.input, *proposal.wrong):
            if not engine.failures(case, answer):
                raise Refused(f"accepts a wrong answer: {answer[:60]!r}")
    except CheckError as error:
        raise Refused(f"cannot be checked here: {error}") from None


def _accepts(case: Case, text: str, engine: Engine) -> bool:
    try:
        return not engine.failures(case, text)
    except CheckError:
        return False


def _refuse_repetition(case: Case, existing: Iterable[Case]) -> None:
    """Raise Refused if a case is like another one."""
    for other in existing:
        if other.id == case.id:
            raise Refused(f"has the id of another case: {other.id}")
        if _are_similar(other.input, case.input):
            raise Refused(f"nearly repeats {other.id}")


def _are_similar(question: str, other_question: str) -> bool:
    first, second = _normalize(question), _normalize(other_question)
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    return matcher.quick_ratio() > _SIMILAR and matcher.ratio() > _SIMILAR


def _normalize(text: str) -> str:
    """Return a text without what a quote may lose: case and the width of blanks."""
    return " ".join(text.split()).casefold()
