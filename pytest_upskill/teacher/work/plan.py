"""The plan of a command, printed first: the most answers that it can request, and their cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_upskill.answers.workplace import WorkError
from pytest_upskill.cells.wording import money
from pytest_upskill.sanitize.plural import counted
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.trials.trial import Trial


@dataclass(frozen=True, slots=True)
class Part:
    """Trials with one purpose, and how often they may run."""

    purpose: str
    trials: Sequence[Trial]
    times: int = 1


def plan_lines(engine: Engine, *parts: Part) -> Iterator[str]:
    """Yield a line for each part, and the total with the maximum cost."""
    answers, recorded, costs = 0, 0, list[float | None]()
    for part in parts:
        estimate = engine.estimate(part.trials)
        runs = estimate.runs * part.times
        answers += runs
        recorded += estimate.recorded
        for model in estimate.models:
            costs.append(None if model.max_usd is None else model.max_usd * part.times)
        yield f"  {part.purpose}: at most {counted(runs, 'answer')}"
    known = [cost for cost in costs if cost is not None]
    total = money(sum(known) if known or not costs else None, at_most=True)
    unknown = ", and models of unknown price" if known and None in costs else ""
    of_recorded = f", {recorded} of them recorded" if recorded else ""
    yield f"at most {counted(answers, 'answer')}{of_recorded}, {total}{unknown}"


def pad_skill_block(trial: Trial, length: int) -> Trial:
    """Return a trial with a skill block of at least ``length`` bytes, to bound its price."""
    lacking = length - len(trial.skill_block.encode())
    return replace(trial, skill_block=trial.skill_block + " " * max(0, lacking))


def check_models(engine: Engine) -> None:
    """Check that the models answer single requests and that their cost can be limited.

    Raises:
        WorkError: A model is an agent; or has no price, and the number of answers is not limited.
    """
    teacher, students = engine.terms.teacher, engine.terms.students
    prices = engine.workplace.resources.prices
    for model in dict.fromkeys((teacher, *students)):
        if model.provider == "offline":
            raise WorkError(
                "offline is not a language model and can be neither teacher nor student: choose "
                "another"
            )
        if model.agent:
            raise WorkError(
                f"{model.label} is an agent, and versions are compared by single answers: "
                f"write {model.name} without the agent"
            )
        if engine.terms.max_answers is None and not prices.has_price(model):
            raise WorkError(
                f"--max-cost: {prices.problem(model)}, or limit the requests with --max-answers"
            )
    if teacher in students:
        engine.say(
            f"{teacher.label} is teacher and student: a skill rarely helps the model that wrote it"
        )
