"""Grading: run every check of a case on every answer of a trial.

It is the last step between answers, which `answers/` gets, and the results of which cells consist.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from pytest_upskill.cases.skill import Case
from pytest_upskill.checks import CheckError, CheckResult, Custom, Judge, OfCalls, Sandboxed
from pytest_upskill.checks.files import Left, OfWorkspace, ProcessCheck, WorkspaceFile, is_of_git
from pytest_upskill.checks.text import MAX_MESSAGE, TextCheck, cut, failed, passed
from pytest_upskill.models import AgentRun, Completion
from pytest_upskill.project.messages import counted
from pytest_upskill.trials.digests import arm_digests, case_digest, grader_digest, trigger_digest
from pytest_upskill.trials.result import RunResult, TrialResult
from pytest_upskill.trials.trial import Trial, least_prompt_tokens
from pytest_upskill.trials.trigger_trial import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One run's completion with the results of its checks, or the reason why it is missing."""

    completion: Completion | None
    sandboxed: tuple[tuple[CheckResult, ...], ...] = ()
    """Results of each check that runs a program, in the order of the case."""
    checked: tuple[CheckResult, ...] | None = None
    """Results of the checks of the text; None if they have not been run yet."""
    judged: tuple[CheckResult | str, ...] | None = None
    """Result of each statement of the case, or why the answer cannot show it; None if not judged.
    """
    left_out: tuple[int, ...] = ()
    """Indexes of the statements that no answer to the case seems to show: they do not count."""
    judgement: Completion | None = None
    """Reply of the judge, for its tokens and cost."""
    choice: Choice | None = None
    """Which skill the model took; None where it had no choice."""
    error: str = ""
    """Why the run is missing: no usable reply, or a check could not be decided."""
    may_come_later: bool = False
    """Whether the run is missing because of trouble that may be over later."""
    why_not_sent: str = ""
    """Why no request was sent; "" if one was."""
    not_needed: bool = False
    """Whether the run was skipped because the verdict was clear."""

    @property
    def ended_at_limit(self) -> bool:
        """Whether an agent's run ended at one of its limits; it fails, whatever files it left."""
        run = self.completion and self.completion.agent_run
        return bool(run and run.limit)


Decide = Callable[[Custom, str], CheckResult]
"""Function that has a plugin decide a custom check on an answer; may raise CheckError."""


def sandboxed_of(case: Case) -> list[Sandboxed]:
    """Return the checks that run a compiler or another program."""
    return [check for check in case.checks if isinstance(check, Sandboxed)]


def text_checks_of(case: Case) -> list[TextCheck]:
    """Return the checks that need only the text of the answer."""
    return [check for check in case.checks if isinstance(check, TextCheck)]


def check_text(checks: Sequence[TextCheck], text: str) -> tuple[CheckResult, ...]:
    """Run checks that need only the text of the answer.

    Raises:
        CheckError: A check cannot be decided.
    """
    return tuple(replace(check.check(text), is_negative=check.is_negative) for check in checks)


def undecided(check: Custom, _text: str) -> CheckResult:
    """Raise CheckError: a custom check cannot be decided without plugins."""
    raise CheckError(f"{check.name}: only a plugin can decide it")


def with_left_out(answers: Sequence[Answer], of_case: Iterable[Answer]) -> list[Answer]:
    """Return a trial's answers, each with the statements that leave every arm of its case.

    A statement leaves if the judge cannot decide it in at least half of the case's answers. The
    arms decide together: what left only one of them would be a difference between them.

    Args:
        answers: The answers of the trial.
        of_case: All answers of its case on its model, with and without the skill.
    """
    judged = [answer.judged for answer in of_case if answer.judged is not None]
    times_undecided = Counter(
        index
        for decisions in judged
        for index, decision in enumerate(decisions)
        if isinstance(decision, str)
    )
    left_out = tuple(sorted(i for i, n in times_undecided.items() if 2 * n >= len(judged)))
    return [replace(answer, left_out=left_out) for answer in answers] if left_out else [*answers]


def grade(trial: Trial, answers: Sequence[Answer], decide: Decide = undecided) -> TrialResult:
    """Run the checks of the trial's case on each answer, and return the trial's result.

    Args:
        trial: The trial.
        answers: One answer for each run.
        decide: Function that decides custom checks.
    """
    undecidable = [trial.case.judge_checks[index] for index in answers[0].left_out]
    kept, kept_answers = _without_left_out(trial, answers) if undecidable else (trial, answers)
    # Without any check every answer would pass.
    nothing_to_check = bool(undecidable) and not kept.case.checks
    needed = [each for each in kept_answers if not (nothing_to_check or each.not_needed)]
    graded = [_grade_run(kept, answer, decide) for answer in needed]
    runs = tuple(run for run in graded if isinstance(run, RunResult))
    # The judge must have decided every run, or the statements count in none.
    any_run_unjudged = any(
        answer.judged is None and not answer.ended_at_limit
        for answer, run in zip(needed, graded, strict=True)
        if isinstance(run, RunResult)
    )
    decided = [] if any_run_unjudged else kept.case.judge_checks
    prompt_digest, skill_digest = arm_digests(trial)
    return TrialResult(
        skill=trial.skill.name,
        case=trial.case.id,
        model=trial.model.label,
        resolved=trial.model.resolved,
        arm=trial.arm,
        min_pass_rate=trial.min_pass_rate,
        prompt_digest=prompt_digest,
        skill_digest=skill_digest,
        grader_digest=trigger_digest(trial) if trial.chooses else grader_digest(kept),
        runs=runs,
        planned=0 if nothing_to_check else trial.runs,
        early_stop=trial.early_stop,
        # Where a model chooses, each run shows the catalogue in another order.
        distinct=0 if trial.chooses else len({run.answer for run in runs}),
        errors=tuple(run for run in graded if isinstance(run, str)),
        agent=trial.model.agent,
        broken=next(filter(None, map(_broken_reason, reversed(needed))), ""),
        train=trial.case.train,
        question=trial.case.input,
        line=trial.case.line,
        ungraded=len(kept.case.judge_checks) if any_run_unjudged else 0,
        trigger=trial.case.trigger if trial.chooses else None,
        listed_as=trial.listed.name if trial.chooses else "",
        undecidable=tuple(each.statement for each in undecidable),
        statements=tuple(each.statement for each in decided),
        case_digest=case_digest(trial.case),
        max_tokens=trial.max_tokens,
        least_prompt_tokens=least_prompt_tokens(trial),
    )


def _without_left_out(trial: Trial, answers: Sequence[Answer]) -> tuple[Trial, Sequence[Answer]]:
    """Return a trial and its answers without the statements that the answers leave out."""
    left_out = {*answers[0].left_out}
    position = count()
    checks = tuple(
        check
        for check in trial.case.checks
        if not isinstance(check, Judge) or next(position) not in left_out
    )
    kept = [
        replace(
            answer,
            judged=answer.judged
            and tuple(each for i, each in enumerate(answer.judged) if i not in left_out),
        )
        for answer in answers
    ]
    return replace(trial, case=replace(trial.case, checks=checks)), kept


def _grade_run(trial: Trial, answer: Answer, decide: Decide) -> RunResult | str:
    """Return the result of a run, or why it is missing."""
    if answer.completion is None or answer.error:
        return answer.error
    if broken := _broken_reason(answer):
        return broken
    try:
        if answer.choice is None:
            checks = tuple(_check(trial, answer, answer.completion, decide))
        else:
            checks = (_check_choice(trial, answer.choice),)
    except CheckError as error:
        return str(error)
    run = answer.completion.agent_run
    return RunResult(
        completion=for_reports(answer.completion, judged=bool(answer.judged)),
        checks=checks,
        judgement=answer.judgement,
        process=tuple(_process_result(check, run) for check in trial.case.process) if run else (),
        choice=answer.choice,
    )


def _broken_reason(answer: Answer) -> str:
    """Return why an agent's run measures nothing, "" if it does or is missing for another cause."""
    run = answer.completion and answer.completion.agent_run
    return run.broken if run and not answer.error else ""


def _check(
    trial: Trial, answer: Answer, completion: Completion, decide: Decide
) -> Iterator[CheckResult]:
    """Yield the result of each check in the order of the case; use results that already exist."""
    text = completion.text
    # The results that exist already, each in the order of the case's checks of that kind.
    sandboxed, judged = iter(answer.sandboxed), iter(answer.judged or ())
    checked = answer.checked
    of_text = iter(check_text(text_checks_of(trial.case), text) if checked is None else checked)
    for check in trial.case.checks:
        if isinstance(check, TextCheck):
            yield next(of_text)
        elif isinstance(check, Sandboxed) and answer.ended_at_limit:
            yield failed(check.name, ": not run, as the agent did not finish")
        elif isinstance(check, Sandboxed):
            yield from next(sandboxed)
        elif isinstance(check, Custom):
            yield decide(check, text)
        elif isinstance(check, OfWorkspace):
            yield check.check_left(left_by(trial.case, completion))
        elif isinstance(check, OfCalls):
            yield check.check_calls(completion.agent_run.calls if completion.agent_run else ())
        elif answer.judged is not None:  # without a judge a statement neither passes nor fails
            decision = next(judged)
            if isinstance(decision, str):
                raise CheckError(f"judge: {check.statement!r} cannot be decided: {decision}")
            yield decision


def _check_choice(trial: Trial, choice: Choice) -> CheckResult:
    """Check whether the skill that a model took, or none, is right."""
    trigger = trial.case.trigger
    assert trigger is not None
    own = trial.listed.name
    right = " or ".join([own, *trigger.others] if trigger.should else trigger.others)
    wanted = f"should choose {right or 'no skill'}"
    if not right and not trigger.nothing:
        wanted = f"should not choose {own}"
    return CheckResult(
        name="trigger",
        passed=trigger.is_right(choice.taken, own),
        message=cut(f"{wanted}: {choice.text}", MAX_MESSAGE),
    )


# The workspace that an agent left, and the checks of what it did there.

_MAX_SHOWN = 64 << 10
"""Maximum characters of the changed files that a judge sees."""


def left_by(case: Case, completion: Completion) -> Left:
    """Return what is in the workspace after a run: the files of the case, with all changes."""
    files = {file.name: file for file in case.staged if not is_of_git(file.name)}
    run = completion.agent_run
    if run is None:
        return Left(files=files)
    files |= {file.name: file for file in run.changed}
    for name in run.deleted:
        files.pop(name, None)
    repository = {file.name: file for file in run.repository}
    return Left(files=files, repository=repository, git=run.git, left_out=run.left_out)


def with_changes(completion: Completion) -> str:
    """Return the answer followed by what the agent changed and the state of git, for a judge.

    What the agent did otherwise is left out, because it would tell whether it had the skill.
    """
    run = completion.agent_run
    return completion.text + "".join(_changes(run) if run else ())


def for_reports(completion: Completion, *, judged: bool) -> Completion:
    """Return a completion for reports: of large files in the workspace, only the beginning.

    Args:
        completion: The completion.
        judged: Whether a judge saw it; whoever labels the answer must then see the same.
    """
    run = completion.agent_run
    if run is None:
        return completion
    if judged:
        files = tuple(_changed_files(run))
    else:
        files = tuple(
            replace(file, text="" if file.binary else file.text[:2000]) for file in run.changed[:50]
        )
    return replace(completion, agent_run=replace(run, changed=files, edits=(), repository=()))


def _changes(run: AgentRun) -> Iterator[str]:
    shown = tuple(_changed_files(run))
    for file in shown:
        text = "(not text)" if file.binary else file.text
        yield f'\n\n<file name="{file.name}">\n{text}\n</file>'
    for name in run.deleted:
        if name not in run.of_setup:
            yield f"\n\n(deleted: {name})"
    if sum(len(file.text) for file in shown) >= _MAX_SHOWN:
        yield f"\n\n(of the changed files, only the first {_MAX_SHOWN:,} characters are shown)"
    if run.git is not None:
        status = "\n".join(run.git.status) or "nothing is uncommitted"
        facts = f"branch {run.git.branch}, {counted(run.git.commits, 'commit')}\n{status}"
        yield f"\n\n<git>\n{facts}\nlast commit: {run.git.message}\n</git>"


def _changed_files(run: AgentRun) -> Iterator[WorkspaceFile]:
    """Yield the changed files as a judge sees them: what was there before by its diff.

    They are cut to the judge's limit of characters, and those of the setup are left out.
    """
    left = _MAX_SHOWN
    edits = {file.name: file for file in run.edits}
    for file in (edits.get(each.name, each) for each in run.changed):
        if file.name in run.of_setup:
            continue
        text = "" if file.binary else file.text[:left]
        left -= len(text)
        yield replace(file, text=text)


def _process_result(check: ProcessCheck | OfCalls, run: AgentRun) -> CheckResult:
    if not isinstance(check, ProcessCheck):
        return check.check_calls(run.calls)
    match check.name:
        case "triggered":
            done = run.called or bool(run.loaded)
            what = f": the agent {'chose' if done else 'did not choose'} the skill"
        case "read_file":
            done = check.file in run.read
            what = f" {check.file}: in {'a' if done else 'no'} request"
        case "ran_script":
            tools = [call.name for call in run.calls if check.file in call.input]
            done = bool(tools)
            what = f" {check.file}: named in {f'a call of {tools[0]}' if done else 'no command'}"
    return (passed if done else failed)(check.name, what)
