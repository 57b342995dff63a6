"""The plan: the most that a command can request and cost, and the gains that a look would find."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pytest_upskill.cases.skill import Case
from pytest_upskill.figures.wording import money
from pytest_upskill.project.messages import counted
from pytest_upskill.stats import look_alpha
from pytest_upskill.teacher import cases
from pytest_upskill.teacher.acceptance import ALPHA, KeptLook, power
from pytest_upskill.teacher.confirmation import look_of, look_trials
from pytest_upskill.teacher.engine import Engine
from pytest_upskill.teacher.search import DRAFTS, bare_trials, is_author_asked, train_trials
from pytest_upskill.teacher.versions import Task
from pytest_upskill.trials.trial import Trial, run_count

_LONGEST_QUESTION = 1000
"""Characters of a case's question that are reckoned with."""

_INSTRUCTIONS, _LONGEST_EXAMPLES = 10_000, 30_000
"""Upper bounds, in bytes, of what else a question to the teacher holds beside skill and sources."""


Part = tuple[str, Sequence[Trial], int]
"""What trials are for, the trials, and how often they may run."""


def plan_lines(engine: Engine, task: Task, chosen: str = "") -> Iterator[str]:
    """Yield the most answers for each purpose, their maximum cost, and what a look would detect.

    Args:
        engine: Knows prices, recordings and looks.
        task: What to improve.
        chosen: The version that the same command has chosen before; "" for none.
    """
    if task.train or task.holdout:
        yield f"{task.skill.name}: {len(task.train)} train cases, {len(task.holdout)} held out"
    look = look_of(engine, task, chosen or task.skill.text) if task.settings.steps else None
    answers, recorded, at_most, likely, unpriced = 0, 0, 0.0, 0.0, False
    for purpose, trials, times in _parts(engine, task, look):
        estimate = engine.estimate(trials)
        if not (runs := estimate.runs * times):
            continue
        answers += runs
        recorded += estimate.recorded
        at_most += times * sum(model.max_usd or 0.0 for model in estimate.models)
        likely += times * sum(model.likely_usd or 0.0 for model in estimate.models)
        unpriced |= bool(estimate.unpriced)
        yield f"  {purpose}: at most {counted(runs, 'answer')}"
    total = money(None if unpriced and not at_most else at_most, at_most=True)
    unknown = ", and models of unknown price" if unpriced and at_most else ""
    of_recorded = f", {recorded} of them recorded" if recorded else ""
    expected = f", likely below {money(likely)}" if likely else ""
    yield f"at most {counted(answers, 'answer')}{of_recorded}, {total}{unknown}{expected}"
    if look and not task.proposes:
        yield from _power_lines(engine, task, look.look)


def _parts(engine: Engine, task: Task, look: KeptLook | None) -> Iterator[Part]:
    """Yield the most requests by their purposes, in the order of the command's steps."""
    settings, teacher = task.settings, engine.teacher.label
    known = len(task.skill.cases) + settings.count + settings.queries
    sources = sum(len(source.text) for source in task.sources)

    def asked(size: int) -> list[Trial]:
        prompt = " " * (_INSTRUCTIONS + sources + size)
        return engine.with_retry(engine.question(task.skill, "question", prompt))

    if task.is_new:
        if is_author_asked(engine, settings):
            yield f"questions of {teacher} to you", asked(0), 1
        yield f"drafts of {teacher}", asked(0), DRAFTS
    if not engine.students:
        return
    if task.proposes or not settings.steps:
        rounds = cases.question_rounds(settings.count, cases.BATCH)
        query_rounds = cases.question_rounds(settings.queries, cases.QUERY_BATCH)
        most = rounds * cases.BATCH
        case = Case(id="case", input="x" * _LONGEST_QUESTION, checks=())
        question = asked(known * _LONGEST_QUESTION)
        own = cases.teacher_trials(engine, task, [case])
        screening = cases.screening_trials(engine, task, [case])
        yield f"proposals of {teacher}", question, rounds
        yield f"queries of {teacher}", question, query_rounds
        yield "its own answers to them, given the sources", own, most
        yield "screening without the skill (not counted)", screening, most
        more = [replace(case, id=f"case-{number}") for number in range(most)]
        task = replace(task, train=[*task.train, *more], holdout=[*task.holdout, *more])
    if look:
        bare, question = bare_trials(engine, task), asked(len(task.longest) + _LONGEST_EXAMPLES)
        now, new = (train_trials(engine, task, text) for text in (task.skill.text, task.longest))
        yield "each question once without the skill, for the page", bare, 1
        yield f"versions of {teacher}", question, settings.steps
        yield "the skill as it is, on train cases", now, 1
        yield "new versions on train cases", new, settings.steps
        both = look_trials(engine, task, task.longest, look.draw)
        yield "both versions on held-out cases", both, 1


def _power_lines(engine: Engine, task: Task, look: int) -> Iterator[str]:
    """Yield the chance to detect a gain."""
    cases, settings, students = len(task.holdout), task.settings, len(engine.students)
    runs = min(
        run_count(each, settings.runs, chooses=settings.description) for each in engine.students
    )
    chance = partial(power, cases=cases, runs=runs, look=look, students=students)
    shown = ", ".join(f"+{points} in {chance(points / 100):.0%}" for points in (10, 20, 30))
    level = f"{look_alpha(look, ALPHA):.2g}"
    yield f"look {look} at this hold-out, level {level}; true gains are detected in"
    yield f"  {shown} of looks, and more often where most cases nearly always pass or fail"
