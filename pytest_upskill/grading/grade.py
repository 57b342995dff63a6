"""From answers to results: every check of a case on every answer of a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pytest_upskill.checks import Check, CheckError, CheckResult, Custom, Judge, Sandboxed
from pytest_upskill.completion import Completion
from pytest_upskill.formats.statements import suspects
from pytest_upskill.result import RunResult, TrialResult
from pytest_upskill.skill import Case
from pytest_upskill.trial import Trial, arm_digests, grader_digest, request


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One run's completion, with what compilers said of it; or why there is none."""

    completion: Completion | None
    compiled: tuple[tuple[CheckResult, ...], ...] = ()
    """The results of each check of the case that a program decides, in its order."""
    checked: tuple[CheckResult, ...] | None = None
    """The results of the checks that the text alone decides, None where they were not made yet."""
    judged: tuple[CheckResult, ...] | None = None
    """A result for each statement of the case, None where nobody judged."""
    judgement: Completion | None = None
    """What the judge said, for its tokens and cost."""
    error: str = ""
    """Why the run is missing data: no usable reply, or a check that could not be decided."""
    unasked: str = ""
    """Why the model was not asked at all."""
    needless: bool = False
    """Whether the verdict was clear without this run."""


Decide = Callable[[Custom, str], CheckResult]
"""Asks the plugin that claims a check about an answer; may raise CheckError."""


def statements_of(case: Case) -> list[Judge]:
    """List what only a judge can decide."""
    return [check for check in case.checks if isinstance(check, Judge)]


def sandboxed_of(case: Case) -> list[Sandboxed]:
    """List what only a program can decide."""
    return [check for check in case.checks if isinstance(check, Sandboxed)]


def text_checks_of(case: Case) -> list[Check]:
    """List what the text of an answer alone decides."""
    return [c for c in case.checks if not isinstance(c, (Sandboxed, Custom, Judge))]


def check_text(checks: Sequence[Check], text: str) -> tuple[CheckResult, ...]:
    """Make checks that the text alone decides.

    Raises:
        CheckError: One of them cannot be decided.
    """
    return tuple(check.check(text) for check in checks)


def undecided(check: Custom, text: str) -> CheckResult:
    """Leave a custom check open, where no plugin can be asked."""
    del text
    raise CheckError(f"{check.name}: only a plugin can tell")


def grade(trial: Trial, answers: Sequence[Answer], decide: Decide = undecided) -> TrialResult:
    """Run the checks of the trial's case on each of its answers."""
    runs: list[RunResult] = []
    errors: list[str] = []
    ungraded = False
    for answer in answers:
        if answer.needless:
            continue
        if answer.completion is None or answer.error:
            errors.append(answer.error)
            continue
        try:
            checks = tuple(_check(trial, answer, answer.completion.text, decide))
        except CheckError as error:
            errors.append(str(error))
        else:
            run = RunResult(completion=answer.completion, checks=checks, judgement=answer.judgement)
            runs.append(run)
            ungraded = ungraded or answer.judged is None
    prompt_digest, skill_digest = arm_digests(request(trial, run=0))
    return TrialResult(
        skill=trial.skill.name,
        case=trial.case.id,
        model=trial.model.label,
        resolved=trial.model.resolved,
        arm=trial.arm,
        min_pass_rate=trial.min_pass_rate,
        prompt_digest=prompt_digest,
        skill_digest=skill_digest,
        grader_digest=grader_digest(trial),
        runs=tuple(runs),
        planned=trial.runs,
        early_stop=trial.early_stop,
        errors=tuple(errors),
        question=trial.case.input,
        line=trial.case.line,
        ungraded=len(statements_of(trial.case)) if ungraded else 0,
        agent_statements=0 if ungraded else len(suspects(trial.case)),
    )


def _check(trial: Trial, answer: Answer, text: str, decide: Decide) -> Iterator[CheckResult]:
    """Check a text, taking the compilers' results where they stand in the case."""
    done, judged = iter(answer.compiled), iter(answer.judged or ())
    checked = None if answer.checked is None else iter(answer.checked)
    for check in trial.case.checks:
        if isinstance(check, Sandboxed):
            yield from next(done)
        elif isinstance(check, Custom):
            yield decide(check, text)
        elif not isinstance(check, Judge):
            yield check.check(text) if checked is None else next(checked)
        elif answer.judged is not None:  # without a judge a statement neither holds nor fails
            yield next(judged)
