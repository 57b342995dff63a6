"""The search for a better version: replies of a teacher, chosen by the train cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_upskill.teacher.engine import Engine, Refused, complete_text
from pytest_upskill.teacher.files import Drafts
from pytest_upskill.teacher.versions import (
    Example,
    Task,
    check_candidate,
    new_version,
    refine_prompt,
)
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import Arm, Trial

TRAIN_RUNS = 3
"""Runs of each train case with each candidate."""

_FAILED, _PASSED = 8, 4
"""Most wrong and most right answers in one question to the teacher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A version of a skill with its results on the train cases."""

    number: int
    """0 is the version in the folder."""
    text: str
    results: Sequence[TrialResult]

    @property
    def passes(self) -> int:
        """Number of runs that passed."""
        return sum(result.passes for result in self.results)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return sum(len(result.runs) for result in self.results)

    @property
    def rank(self) -> tuple[int, int, int]:
        """The order of preference: passes, then brevity, then age."""
        return self.passes, -len(self.text.encode()), -self.number


def search(
    engine: Engine, task: Task, drafts: Drafts
) -> tuple[Candidate, Candidate, Sequence[Mapping[str, Any]]]:
    """Ask for versions, and choose the one that passes most train cases.

    Returns:
        The version as it was, the best version, and what became of each candidate, as JSON.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
    """
    current = _measure(engine, task, task.text, 0)
    engine.say(f"now: {current.passes} of {current.runs} runs of the train cases pass")
    pool, refused, log = [current], list[str](), list[dict[str, Any]]()
    for step in range(1, task.settings.steps + 1):
        best = max(pool, key=lambda candidate: candidate.rank)
        examples = _examples(best.results, task)
        if best.passes == best.runs:
            break
        asked = refine_prompt(best.text, examples, refused, task.settings)
        question = engine.question(task.skill, f"edit-{step}", asked, run=step)
        entry: dict[str, Any] = {"number": step, "from": best.number}
        log.append(entry)
        reply = engine.ask(question, f"candidate {step}")
        drafts.write(f"candidates/{step:02}-reply.md", reply.text)
        try:
            new = _read_version(task, best, complete_text(reply), pool)
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
            refused.append(f"version {step} did no better than the one above")
    return current, max(pool, key=lambda candidate: candidate.rank), log


def _read_version(task: Task, best: Candidate, reply: str, pool: Iterable[Candidate]) -> str:
    """Return the text that a reply makes of the best version.

    Raises:
        Refused: The new text is not allowed, or repeats a version of the pool.
    """
    settings = task.settings
    new = new_version(best.text, reply, description=settings.description)
    if any(each.text == new for each in pool):
        raise Refused("the reply reproduces an earlier version")
    cases, description = (*task.train, *task.holdout), settings.description
    check_candidate(new, task.text, cases, known=settings.known, description=description)
    return new


def train_trials(engine: Engine, task: Task, text: str) -> list[Trial]:
    """Return the trials of the train cases with a version."""
    arm: Arm = "trigger" if task.settings.description else "with_skill"
    return engine.trials(task.version(text), task.train, arm, runs=TRAIN_RUNS)


def bare_trials(engine: Engine, task: Task) -> list[Trial]:
    """Return a run without the skill of each case of which no comparison has one."""
    if task.settings.description:
        return []
    cases = task.train if task.is_new else [*task.train, *task.holdout]
    return engine.trials(task.skill, cases, "without_skill", runs=1)


def _measure(engine: Engine, task: Task, text: str, number: int) -> Candidate:
    purpose = f"candidate {number} on train cases"
    results = engine.results(train_trials(engine, task, text), purpose)
    return Candidate(number=number, text=text, results=results)


def _examples(results: Iterable[TrialResult], task: Task) -> list[Example]:
    """Return an answer for each case, wrong ones first: those of cases that fail most often."""
    cases = {case.id: case for case in task.train}
    worst: dict[str, TrialResult] = {}
    for result in sorted(results, key=lambda each: (each.passes / len(each.runs), each.case)):
        worst.setdefault(result.case, result)
    found: dict[bool, list[Example]] = {False: [], True: []}
    for name, result in worst.items():
        run = min(result.runs, key=lambda each: each.passed)
        case, wanted = cases[name], ""
        if task.settings.description and case.trigger:
            wanted = "it is for this skill" if case.trigger.should else "it is not for this skill"
        example = Example(
            question=case.input,
            answer=run.choice.text if run.choice else run.completion.text,
            passed=run.passed,
            wanted=wanted,
            quote=case.quote,
        )
        found[run.passed].append(example)
    # Of the right answers, those first that are right least often: they are lost most easily.
    return [*found[False][:_FAILED], *found[True][:_PASSED]]
