"""The workspace that an agent left, and the checks of what it did there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pytest_upskill.cases.skill import Case
from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.calls import OfCalls
from pytest_upskill.checks.files import Left, ProcessCheck, WorkspaceFile, is_of_git
from pytest_upskill.checks.result import failed, passed
from pytest_upskill.models import AgentRun, Completion
from pytest_upskill.project.messages import counted

_MAX_SHOWN = 64 << 10
"""Maximum characters of the changed files that a judge sees."""

_MAX_KEPT = 2000
"""Characters of a changed file in a report."""

_MAX_KEPT_FILES = 50
"""Changed files of a run in a report."""


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
    if run is None:
        return completion.text
    return "".join((completion.text, *_changes(run)))


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
            replace(file, text="" if file.binary else file.text[:_MAX_KEPT])
            for file in run.changed[:_MAX_KEPT_FILES]
        )
    kept = replace(run, changed=files, edits=(), repository=())
    return replace(completion, agent_run=kept)


def process_results(
    checks: Iterable[ProcessCheck | OfCalls], run: AgentRun | None
) -> tuple[CheckResult, ...]:
    """Return the results of the checks of what an agent did; none without a run of an agent."""
    return () if run is None else tuple(_result(check, run) for check in checks)


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


def _result(check: ProcessCheck | OfCalls, run: AgentRun) -> CheckResult:
    if not isinstance(check, ProcessCheck):
        return check.check_calls(run.calls)
    match check.name:
        case "triggered":
            done = run.called or bool(run.loaded)
            evidence = "the agent chose the skill" if done else "the agent did not choose the skill"
            return (passed if done else failed)(check.name, f": {evidence}")
        case "read_file":
            done = check.file in run.read
            evidence = "in a request" if done else "in no request"
            return (passed if done else failed)(check.name, f" {check.file}: {evidence}")
        case "ran_script":
            named = [call for call in run.calls if check.file in call.input]
            evidence = f"named in a call of {named[0].name}" if named else "named in no command"
            return (passed if named else failed)(check.name, f" {check.file}: {evidence}")
