"""The versions of a skill that a teacher writes: a draft, then edits, chosen by the train cases."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from pytest_upskill import CASE_FILE
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.teacher import versions
from pytest_upskill.teacher.engine import Engine, Refused, read_part
from pytest_upskill.teacher.sources import Source, marked_sources, prompt, source_of
from pytest_upskill.teacher.versions import Settings, Task
from pytest_upskill.trials.result import RunResult, TrialResult
from pytest_upskill.trials.trial import Arm, Trial

DRAFTS = 2
"""How often a draft is asked for until one is accepted."""

_INTERVIEW = "interview.md"
_Questions = Annotated[list[str], Field(max_length=3)]


def request_draft(engine: Engine, settings: Settings) -> tuple[Skill, Sequence[Source]]:
    """Ask for a draft, again if it is refused, and write it into the command's drafts.

    Returns:
        The skill, and what it was written from: the sources, or the author's answers.

    Raises:
        Refused: The last attempt was refused too.
        Stopped: An answer is missing, or a limit would be passed.
    """
    if is_author_asked(engine, settings):
        settings = replace(settings, sources=_answers_of_author(engine, settings))
    refused = ""
    for attempt in range(DRAFTS):
        asked = prompt(
            "draft",
            task=settings.task,
            name=settings.name,
            limit=f"{versions.MAX_SKILL_TOKENS:,}",
            sources=marked_sources(settings.sources),
            refused=refused,
        )
        question = engine.question(settings.longest_skill(), "draft", asked, run=attempt)
        try:
            reply = engine.ask(question, "draft", f"draft-{attempt + 1}-reply.md")
            draft, references = versions.read_draft(reply, settings.known, name=settings.name)
            settings.new_folder(draft.name)
        except (Refused, WorkError) as reason:
            refused = str(reason)
            engine.say(f"draft {attempt + 1}: refused: {refused}")
            continue
        engine.say(f"draft: {draft.name}")
        # The folder of drafts itself holds files that are not the skill's.
        for path, text in {"SKILL.md": draft.text, **references}.items():
            engine.drafts.write(f"skill/{path}", text)
        folder = engine.drafts.folder / "skill"
        skill = Skill(
            name=draft.name,
            description=draft.description,
            text=draft.text,
            case_file=folder / CASE_FILE,
            cases=(),
            folder=folder,
        )
        return skill, settings.sources
    raise Refused(f"no usable draft: {refused}")


def is_author_asked(engine: Engine, settings: Settings) -> bool:
    """Return whether the author is asked: there is no source, but somebody at a terminal."""
    consent = engine.consent
    return not settings.sources and consent.terminal is not None and not consent.yes


def _answers_of_author(engine: Engine, settings: Settings) -> list[Source]:
    """Ask the author the teacher's questions, or read what was answered before, as a source."""
    if not (answers := engine.drafts.read(_INTERVIEW)):
        asked = prompt("interview", task=settings.task)
        question = engine.question(settings.longest_skill(), "interview", asked)
        try:
            questions = read_part(engine.ask(question, "questions"), "questions", _Questions)
        except Refused:
            return []
        answered = [(each, engine.consent.ask_text(each)) for each in questions]
        answers = "\n\n".join(f"## {each}\n\n{answer}" for each, answer in answered if answer)
        engine.drafts.write(_INTERVIEW, answers)
    return [source_of("the author's answers", answers)] if answers.strip() else []


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


def search(engine: Engine, task: Task) -> tuple[Candidate, Candidate, Sequence[Mapping[str, Any]]]:
    """Ask for versions, and choose the one that passes most train cases.

    Returns:
        The version as it was, the best version, and what became of each candidate, as JSON.

    Raises:
        Stopped: An answer is missing, or a limit would be passed.
    """
    settings, current = task.settings, _measure(engine, task, task.skill.text, 0)
    engine.say(f"now: {current.passes} of {current.runs} runs of the train cases pass")
    pool, refused, log = [current], list[str](), list[dict[str, Any]]()
    for step in range(1, settings.steps + 1):
        best = max(pool, key=lambda candidate: candidate.rank)
        if best.passes == best.runs:
            break
        # No check, no check's message, and nothing of a held-out case.
        asked = prompt(
            "description" if settings.description else "edits",
            text=best.text,
            examples=_examples(best.results, task),
            refused=refused,
            size=f"{versions.estimate_tokens(best.text):,}",
            limit=f"{versions.token_limit(best.text):,}",
            settings=settings,
            sources=marked_sources(settings.sources),
        )
        question = engine.question(task.skill, f"edit-{step}", asked, run=step)
        entry: dict[str, Any] = {"number": step, "from": best.number}
        log.append(entry)
        try:
            reply = engine.ask(question, f"candidate {step}", f"candidates/{step:02}-reply.md")
            new = _read_version(task, best, reply, pool)
        except Refused as reason:
            entry["refused"] = str(reason)
            refused.append(str(reason))
            engine.say(f"candidate {step}: refused: {reason}")
            continue
        engine.drafts.write(f"candidates/{step:02}.md", new)
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
    cases, known = (*task.train, *task.holdout), task.settings.known
    description = task.settings.description
    new = versions.new_version(best.text, reply, of_description=description)
    if any(each.text == new for each in pool):
        raise Refused("the reply reproduces an earlier version")
    versions.check_candidate(new, task.skill.text, cases, known=known, description=description)
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
    results = engine.results(train_trials(engine, task, text), f"candidate {number} on train cases")
    return Candidate(number=number, text=text, results=results)


def _examples(results: Iterable[TrialResult], task: Task) -> list[tuple[Case, RunResult]]:
    """Return a run of each case, wrong ones first: those of cases that fail most often."""
    worst: dict[str, RunResult] = {}
    for result in sorted(results, key=lambda each: (each.passes / len(each.runs), each.case)):
        worst.setdefault(result.case, min(result.runs, key=lambda run: run.passed))
    cases = {case.id: case for case in task.train}
    found = [(cases[name], run) for name, run in worst.items()]
    # Of the right answers, those first that are right least often: they are lost most easily.
    wrong, right = ([each for each in found if each[1].passed is so] for so in (False, True))
    return [*wrong[:_FAILED], *right[:_PASSED]]
