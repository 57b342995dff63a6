"""The search for a better version: edits of a teacher, chosen by the train cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.cases.skill_files import read_bundle
from pytest_upskill.cases.skill_text import read_skill_text
from pytest_upskill.models import Completion
from pytest_upskill.teacher.engine import Engine, Refused, complete_text
from pytest_upskill.teacher.files import Drafts
from pytest_upskill.teacher.versions import (
    Failure,
    apply_edits,
    byte_limit,
    check_candidate,
    read_edits,
    refine_prompt,
)
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import Trial

TRAIN_RUNS = 3
"""Runs of each train case with each candidate."""

_SHOWN = 8
"""Most failures in one question to the teacher."""

_LONGEST_PROMPT = 24_000
"""Upper bound, in bytes, of a question to the teacher without the skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to improve, and by which cases."""

    skill: Skill
    text: str
    """The ``SKILL.md`` in the folder, with ``\\n`` as line breaks."""
    train: Sequence[Case]
    holdout: Sequence[Case]
    steps: int
    """Versions to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A version of a skill with its results on the train cases."""

    number: int
    """0 is the version in the folder."""
    text: str
    passes: int
    runs: int
    failures: tuple[Failure, ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        """The order of preference: passes, then brevity, then age."""
        return self.passes, -len(self.text.encode()), -self.number


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The version in the folder, the best version, and what was tried."""

    current: Candidate
    best: Candidate
    log: tuple[Mapping[str, Any], ...]
    """What became of each candidate, as JSON."""


def skill_version(skill: Skill, text: str) -> Skill:
    """Return a skill with another ``SKILL.md``, and with the files that this one names."""
    read = read_skill_text(text, folder=skill.folder.name)
    return replace(skill, text=read_bundle(skill.folder, read, skill.hidden_files).text)


def search(engine: Engine, task: Task, drafts: Drafts) -> SearchResult:
    """Ask for edits, and choose the version that passes most train cases.

    Args:
        engine: Runs the trials.
        task: The skill to improve, and its cases.
        drafts: The folder for replies and candidates.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
    """
    current = _measure(engine, task, task.text, 0)
    engine.say(f"now: {current.passes} of {current.runs} runs of the train cases pass")
    pool, refused, log = [current], list[str](), list[dict[str, Any]]()
    for step in range(1, task.steps + 1):
        best = max(pool, key=lambda candidate: candidate.rank)
        if not best.failures:
            break
        prompt = refine_prompt(best.text, best.failures, refused, limit=byte_limit(task.text))
        question = engine.question(task.skill, f"edit-{step}", prompt, run=step)
        reply = engine.ask(question, f"candidate {step}")
        entry: dict[str, Any] = {"number": step, "from": best.number}
        log.append(entry)
        drafts.write(f"candidates/{step:02}-reply.md", reply.text)
        try:
            new = _apply_reply(task, best, reply, pool)
        except Refused as reason:
            entry["refused"] = str(reason)
            refused.append(str(reason))
            engine.say(f"candidate {step}: refused: {reason}")
            continue
        drafts.write(f"candidates/{step:02}.md", new)
        candidate = _measure(engine, task, new, step)
        pool.append(candidate)
        entry |= {"passes": candidate.passes, "runs": candidate.runs}
        engine.say(f"candidate {step}: {candidate.passes} of {candidate.runs}")
        if candidate.passes <= best.passes:
            refused.append(f"a version that did no better than the one above (number {step})")
    return SearchResult(
        current=current, best=max(pool, key=lambda candidate: candidate.rank), log=tuple(log)
    )


def longest_question(engine: Engine, task: Task) -> Trial:
    """Return the longest question for edits, to bound its price."""
    return engine.question(task.skill, "edit", " " * (byte_limit(task.text) + _LONGEST_PROMPT))


def train_trials(engine: Engine, task: Task, text: str) -> list[Trial]:
    """Return the trials of the train cases with a version."""
    return engine.trials(skill_version(task.skill, text), task.train, "with_skill", runs=TRAIN_RUNS)


def _apply_reply(task: Task, best: Candidate, reply: Completion, pool: Iterable[Candidate]) -> str:
    """Return the text of the best version after the edits of a reply.

    Raises:
        Refused: The new text is not allowed, or repeats a version of the pool.
    """
    new = apply_edits(best.text, read_edits(complete_text(reply)))
    if any(each.text == new for each in pool):
        raise Refused("the edits reproduce an earlier version")
    cases = (*task.train, *task.holdout)
    check_candidate(new, task.text, cases, limit=byte_limit(task.text))
    return new


def _measure(engine: Engine, task: Task, text: str, number: int) -> Candidate:
    results = engine.results(train_trials(engine, task, text), f"candidate {number} on train cases")
    return Candidate(
        number=number,
        text=text,
        passes=sum(result.passes for result in results),
        runs=sum(len(result.runs) for result in results),
        failures=tuple(_failures(results, task.train)),
    )


def _failures(results: Iterable[TrialResult], cases: Iterable[Case]) -> list[Failure]:
    """Return one failed answer of each case, the cases that fail most often first."""
    by_id = {case.id: case for case in cases}
    failed = [result for result in results if result.passes < len(result.runs)]
    failed.sort(key=lambda result: (result.passes / len(result.runs), result.case))
    worst: dict[str, TrialResult] = {}
    for result in failed:
        worst.setdefault(result.case, result)
    return [
        Failure(
            question=by_id[case].input,
            answer=next(run.completion.text for run in result.runs if not run.passed),
            quote=by_id[case].quote,
        )
        for case, result in [*worst.items()][:_SHOWN]
    ]
