"""One run of an agent, whichever it is: its workspace before, its work, and what it leaves.

Setup and git run in the sandbox, because a repository names programs in its settings. What is left
is read without following links.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

from pytest_upskill.agents.exchanges import Exchanges
from pytest_upskill.answers.budget import BudgetError
from pytest_upskill.checks.files import (
    MAX_BYTES,
    MAX_FILES,
    Files,
    GitState,
    Left,
    WorkspaceFile,
    is_of_git,
    is_safe_name,
)
from pytest_upskill.checks.text import cut
from pytest_upskill.models import AgentRun, AgentTask, Completion, ProviderError
from pytest_upskill.project.files import open_regular
from pytest_upskill.sandbox.limits import Limits, entries_below
from pytest_upskill.sandbox.run import Outcome, Sandbox, SandboxError, Workspace, workspace
from pytest_upskill.sandbox.shell import HOME, WORK, Shell

SKILLS_FOLDER = ".agents/skills"
"""The folder, below the home folder, where most agents look for skills."""
_SETUP = Limits(
    wall_s=300,
    cpu_s=300,
    memory_bytes=64 << 30,
    file_bytes=1 << 30,
    files=100_000,
    open_files=4096,
    processes=2000,
)
"""Limits of a command of a setup; all of them together have its time, as an agent has."""
_MAX_SHOWN = 300
"""Characters of a failed command's output, at the end."""

_BUNDLE = "in/history.bundle"
# Files of the case stay as they are where the history has others of these names.
_REPOSITORY = """
set -e
GIT_AUTHOR_DATE=2026-01-01T00:00:00Z; GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
export GIT_AUTHOR_DATE GIT_COMMITTER_DATE
git init -q --template= -b main
git config user.name agent
git config user.email agent@localhost
if [ -z "$1" ]; then git add -A; git commit -q --allow-empty -m 'Initial commit'; exit; fi
git fetch -q --update-head-ok "$1" '+refs/*:refs/*'
head=$(git bundle list-heads "$1" HEAD | cut -d ' ' -f 1)
branches=$(git for-each-ref --format='%(refname)' ${head:+--points-at="$head"} refs/heads)
for branch in $branches refs/heads/master refs/heads/main; do
  case " "$branches" " in *"$branch"*) chosen=$branch;; esac
done
git symbolic-ref HEAD "$chosen"
git read-tree HEAD
git checkout-index -a -q || :
"""
_GIT_STATE = """
exec 2> /dev/null
git symbolic-ref -q --short HEAD || echo
git rev-list --count HEAD || echo 0
git -c core.quotePath=false status --porcelain || exit 1
echo
git log -1 --format=%B || :
"""

_MAX_ENTRIES = 20_000
"""Maximum number of files, folders and others that are looked at, besides those in ``.git``."""


class NotStartedError(ProviderError):
    """An agent that cannot run on this machine now, but perhaps later."""


async def run_agent(
    exchanges: Exchanges,
    work: Callable[[AgentWorkspace], Awaitable[str]],
    *,
    name: str,
    version: str,
    sandbox: Sandbox,
    skills_folder: str = SKILLS_FOLDER,
) -> Completion:
    """Run an agent in a new workspace, and return its last reply with what it did.

    Args:
        exchanges: What the agent gets, and its exchanges so far.
        work: Has the agent work until the run ends; returns the limit that ended it, "" for none.
        name: Name of the agent in errors.
        version: Version of the agent.
        sandbox: Runs the setup, git, and the tools of the built-in agent.
        skills_folder: The folder, below the home folder, where skills are installed.

    Raises:
        BudgetError, ProviderError: The run has no result; ``paid`` is what it has cost so far.
    """
    folders = ExitStack()
    try:
        home = folders.enter_context(workspace())
        place = await asyncio.to_thread(
            AgentWorkspace, exchanges.task, sandbox, home, skills_folder
        )
        await asyncio.to_thread(place.set_up)
        run = exchanges.run(version, await work(place))
        if not exchanges.task.chooses:
            run = await asyncio.to_thread(place.record, run, exchanges.redact)
    except (OSError, SandboxError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        stopped = NotStartedError(f"{name}: cannot run the agent: {reason}", billable=False)
        stopped.paid = exchanges.paid()
        raise stopped from None
    except (BudgetError, ProviderError) as error:
        error.paid = exchanges.paid()
        raise
    finally:
        # In a thread: to remove an agent's many files may take seconds.
        await asyncio.to_thread(folders.close)
    return exchanges.completion(run)


class AgentWorkspace:
    """The folders of one run; its functions take time and belong on a thread.

    Args:
        task: What the agent gets.
        sandbox: Runs the setup and git.
        home: A new workspace of the sandbox.
        skills_folder: The folder, below the home folder, where skills are installed.

    Raises:
        OSError: The files cannot be written.
    """

    def __init__(
        self, task: AgentTask, sandbox: Sandbox, home: Workspace, skills_folder: str
    ) -> None:
        self._task = task
        self._prepared: Files = {file.name: file for file in task.workspace}
        # The first of several skills in one folder is the one under test.
        by_folder = {skill.folder: skill for skill in reversed(task.installed)}
        skills = {
            f"{HOME}/{skills_folder}/{folder}/{file.name}": file.content
            for folder, skill in by_folder.items()
            for file in skill.files
        }
        work = {f"{WORK}/{file.name}": file.content for file in task.workspace}
        self.shell = Shell(sandbox, home, {**work, **skills})

    def set_up(self) -> None:
        """Make the repository, and run the commands of the setup.

        Raises:
            ProviderError: One of them failed.
            OSError, SandboxError: The sandbox cannot start them.
        """
        setup, ends_at = self._task.setup, time.monotonic() + _SETUP.wall_s
        if setup.git:
            bundle = ""
            if isinstance(setup.git, WorkspaceFile):
                self.shell.home.write_bytes(_BUNDLE, setup.git.content)
                bundle = str(self.shell.home.root / _BUNDLE)
            _check_setup("git", self.shell.run(_REPOSITORY, bundle))
        for command in setup.commands:
            limits = replace(_SETUP, wall_s=max(0.1, ends_at - time.monotonic()))
            _check_setup(command, self.shell.bash(command, limits))
        if setup.commands or setup.git:
            try:
                self._prepared = read_left(self.shell.folder).files
            except TooMuchLeft as error:
                raise _setup_error(f"{error}: leave less") from None

    def record(self, run: AgentRun, redact: Callable[[str], str]) -> AgentRun:
        """Return the record of a run with what it left in the workspace.

        More files than a record may hold are a limit that the run has reached.

        Args:
            run: The record without it.
            redact: Hides the key: an agent may write what the host has sent before it is redacted.
        """
        try:
            left = read_left(self.shell.folder)
        except TooMuchLeft as error:
            return replace(run, limit=run.limit or str(error), left_out=(f"all: {error}",))
        staged = {file.name: file for file in self._task.workspace if not is_of_git(file.name)}
        changed = [file for name, file in left.files.items() if staged.get(name) != file]
        deleted = [name for name in staged if name not in left.files]
        of_setup = {file.name for file in changed if self._prepared.get(file.name) == file}
        edits = [
            _diff(before, file)
            for file in changed
            if file.name not in of_setup and (before := self._prepared.get(file.name))
        ]
        git = self._git_state()

        def redacted(files: Iterable[WorkspaceFile]) -> tuple[WorkspaceFile, ...]:
            return tuple(replace(file, text=redact(file.text)) for file in files)

        return replace(
            run,
            changed=redacted(changed),
            edits=redacted(edits),
            deleted=tuple(deleted),
            of_setup=(*sorted(of_setup), *(name for name in deleted if name not in self._prepared)),
            git=git and replace(git, message=redact(git.message)),
            repository=redacted(left.repository.values()),
            left_out=left.left_out,
        )

    def _git_state(self) -> GitState | None:
        """Return the state of the repository, None if there is none that git can read."""
        outcome = None
        if os.path.lexists(self.shell.folder / ".git"):
            with suppress(SandboxError):
                outcome = self.shell.run(_GIT_STATE)
        if outcome is None or not outcome.succeeded:
            return None
        head, _, message = outcome.output.partition("\n\n")
        branch, commits, *status = f"{head}\n".split("\n")
        return GitState(
            branch=branch,
            commits=int(commits) if commits.isdecimal() else 0,
            status=tuple(filter(None, status)),
            message=message.strip(),
        )


def _diff(before: WorkspaceFile, after: WorkspaceFile) -> WorkspaceFile:
    """Return the changes of a file as a file of its name; "" if one of the two is not text."""
    if before.binary or after.binary:
        return replace(after, text="", binary=True)
    texts = (before.text.splitlines(), after.text.splitlines())
    lines = unified_diff(*texts, "before", "after", lineterm="")
    return replace(after, text="\n".join(lines)[: 64 << 10])


def _check_setup(command: str, outcome: Outcome) -> None:
    """Raise ProviderError if a command of a setup failed."""
    if outcome.succeeded:
        return
    output = " ".join(outcome.output.split())[-_MAX_SHOWN:]
    raise _setup_error(f"{cut(command, 80)!r} failed ({outcome.how}): {output}".removesuffix(": "))


def _setup_error(what: str) -> ProviderError:
    """Return the error of a case, which says nothing about its model."""
    return ProviderError(f"setup: {what}", billable=False)


class TooMuchLeft(Exception):  # noqa: N818  a miss of the agent, not an error of this program
    """The folder contains more than a record may hold; the message says what."""


def read_left(folder: Path) -> Left:
    """Return the regular files below a folder; the program that wrote them must have ended.

    Links, pipes and other special files are left out, and so are names that no record may have, and
    a repository that is larger than a record may hold.

    Raises:
        TooMuchLeft: There are more than `MAX_FILES` or more than `MAX_BYTES`.
    """
    names: dict[bool, list[str]] = {False: [], True: []}
    for entry in entries_below(str(folder)):
        name = Path(entry.path).relative_to(folder).as_posix()
        names[is_of_git(name)].append("" if entry.is_dir(follow_symlinks=False) else name)
        if len(names[False]) > _MAX_ENTRIES:
            raise TooMuchLeft(f"it left more than {_MAX_ENTRIES:,} entries in the workspace")
    left_out: list[str] = []
    files = _read_files(folder, names[False], left_out)
    repository: Mapping[str, WorkspaceFile] = {}
    try:
        repository = _read_files(folder, names[True], [])
    except TooMuchLeft:
        left_out.append(".git (too large)")
    return Left(files=files, repository=repository, left_out=tuple(left_out[:20]))


def _read_files(folder: Path, names: list[str], left_out: list[str]) -> Files:
    """Read files, and note what is left out.

    Raises:
        TooMuchLeft: There are more than `MAX_FILES` or more than `MAX_BYTES`.
    """
    files: dict[str, WorkspaceFile] = {}
    bytes_left = MAX_BYTES
    for name in sorted(filter(None, names)):
        if not is_safe_name(name):
            left_out.append(f"{cut(name, 100)} (its name)")
            continue
        if len(files) >= MAX_FILES:
            raise TooMuchLeft(f"it left more than {MAX_FILES:,} files in the workspace")
        with suppress(OSError), open_regular(folder / name) as file:
            # One byte more than there may be, to see that there is more.
            content = file.read(bytes_left + 1)
            bytes_left -= len(content)
            files[name] = WorkspaceFile.of(name, content)
        if name not in files:
            left_out.append(f"{name} (a link or no regular file)")
        if bytes_left < 0:
            raise TooMuchLeft(f"it left more than {MAX_BYTES >> 20} MiB in the workspace")
    return files
