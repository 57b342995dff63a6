"""What an agent left in its workspace: checks of its files, its repository, and commands in it."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar, Literal

from pytest_upskill.checks.cpu_limit import CheckError
from pytest_upskill.checks.text import Check, CheckResult, TextCheck, about, failed, passed, quoted
from pytest_upskill.project.messages import listed

if TYPE_CHECKING:
    from pytest_upskill.sandbox.run import Sandbox

MAX_FILES = 2000
"""Maximum number of files in a workspace."""

MAX_BYTES = 1 << 20
"""Maximum total size of the files in a workspace."""

_MAX_NAMES = 5
_LONGEST_NAME = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceFile:
    """A file in a workspace."""

    name: str
    """Path relative to the workspace, with slashes."""
    text: str
    """The content; in base64 if it is not UTF-8 text."""
    binary: bool = False
    """Whether ``text`` is base64."""

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return b64decode(self.text) if self.binary else self.text.encode("utf-8", "replace")

    @property
    def prompt(self) -> str:
        """The text as a prompt has it: without a byte order mark, with plain ends of lines."""
        return "" if self.binary else self.text.removeprefix("\ufeff").replace("\r\n", "\n")

    @classmethod
    def of(cls, name: str, content: bytes) -> WorkspaceFile:
        """Make a file from its bytes."""
        with suppress(UnicodeDecodeError):
            if b"\0" not in content:
                return cls(name=name, text=content.decode())
        return cls(name=name, text=b64encode(content).decode(), binary=True)


Files = Mapping[str, WorkspaceFile]
"""The files of a workspace by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is done in the sandbox with the files of a workspace before an agent starts."""

    git: bool | WorkspaceFile = False
    """True for a repository with one commit of the files; a git bundle for its history."""
    commands: tuple[str, ...] = ()
    """Commands of the shell, after that; each must succeed."""


NO_SETUP = Setup()


@dataclass(frozen=True, slots=True, kw_only=True)
class GitState:
    """The state of a git repository, as git reports it."""

    branch: str
    """"" for a detached HEAD."""
    commits: int
    message: str
    """The message of the last commit; "" if there is none."""
    status: tuple[str, ...] = ()
    """Lines of ``git status --porcelain``: nothing is uncommitted if there are none."""

    @property
    def staged(self) -> list[str]:
        """Names of the files whose changes are staged."""
        names = [line[3:].rpartition(" -> ")[2] for line in self.status if line[0] not in " ?"]
        # Git quotes names with blanks.
        return [re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] == '"' else name for name in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What an agent left in its workspace."""

    files: Files
    repository: Files = field(default_factory=dict)
    """The files below ``.git``."""
    git: GitState | None = None
    """None without a repository."""
    left_out: tuple[str, ...] = ()
    """What is not among the files, with the reason."""

    @property
    def all_files(self) -> tuple[WorkspaceFile, ...]:
        """The files with those of the repository."""
        return (*self.files.values(), *self.repository.values())


def is_of_git(name: str) -> bool:
    """Return whether a file belongs to a git repository itself."""
    return ".git" in name.split("/")


_FOLDERS_OF_INPUTS = frozenset({"eval", "evals", "evaluations", "files", "fixtures", "inputs"})
"""Names of folders in which authors keep the inputs of cases."""


def placed(files: Sequence[WorkspaceFile], prompt: str) -> tuple[WorkspaceFile, ...]:
    """Return files with the names by which a prompt calls them, as an agent looks for them.

    Of those that it does not name, the author's folders of inputs are left out:
    ``evals/files/src/a.py`` is ``src/a.py``.
    """
    paths = [_inside(file.name) for file in files]
    places = [_called(path, prompt) or _without_folders_of_inputs(path) for path in paths]
    places = places if len({*places}) == len(places) else paths
    return tuple(replace(file, name=str(path)) for file, path in zip(files, places, strict=True))


def _without_folders_of_inputs(path: PurePosixPath) -> PurePosixPath:
    authors = takewhile(lambda part: part.casefold() in _FOLDERS_OF_INPUTS, path.parts[:-1])
    return PurePosixPath(*path.parts[len([*authors]) :])


def _called(path: PurePosixPath, prompt: str) -> PurePosixPath | None:
    """Return the path in a prompt that ends as a file's path does, the most alike; else None."""
    for start in range(len(path.parts)):
        end = re.escape("/".join(path.parts[start:]))
        if match := re.search(rf"(?<![\w.-])(?:[\w.-]*/)*{end}(?![\w-])", prompt):
            return _inside(match[0].removeprefix("/workspace/"))
    return None


def _inside(name: str) -> PurePosixPath:
    """Return the path of a file without what leads out of a workspace."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part.strip("/.")]
    path = "/".join(parts)
    return PurePosixPath(path if is_safe_name(path) else "file")


@dataclass(frozen=True, slots=True)
class FileExists(Check):
    """A check that the workspace has a file with a name that matches a pattern."""

    name: ClassVar[str] = "file_exists"
    file: str
    """A relative path, in which ``*`` and ``?`` are wildcards."""

    def check_left(self, left: Left) -> CheckResult:
        """Search for the file."""
        found = _matching(self.file, left.files)
        if found:
            return passed(self.name, f" {self.file}: {listed(found, _MAX_NAMES)}")
        return failed(self.name, f" {self.file}: not in the workspace ({_summary(left)})")


@dataclass(frozen=True, slots=True, kw_only=True)
class InFile(Check):
    """A check of the text of a file in the workspace."""

    name: Literal["file", "file_contains"] = "file"
    file: str
    """A relative path, in which ``*`` and ``?`` are wildcards; one matching file is enough."""
    check: TextCheck

    def check_left(self, left: Left) -> CheckResult:
        """Check the text of each file that matches."""
        found = _matching(self.file, left.files)
        if not found:
            return failed(self.name, f" {self.file}: not in the workspace ({_summary(left)})")
        for name in found:
            file = left.files[name]
            if file.binary:
                result = failed(self.name, f" {name}: is not text")
            else:
                result = about(self.check.check(file.text), f"{self.name} {name}", "the file")
            if result.passed:
                break
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Git(Check):
    """A check of one fact; exactly one of the fields is set."""

    name: ClassVar[str] = "git"

    branch: str = ""
    """The current branch; ``*`` and ``?`` are wildcards."""
    clean: bool | None = None
    """Whether nothing is uncommitted or untracked."""
    message: TextCheck | None = None
    """A check of the message of the last commit."""
    staged: str = ""
    """A file whose changes are staged; ``*`` and ``?`` are wildcards."""

    def check_left(self, left: Left) -> CheckResult:
        """Compare the fact.

        Raises:
            CheckError: The check of the message cannot be decided.
        """
        if left.git is None:
            return failed(self.name, ": there is no git repository in the workspace")
        if self.message is not None:
            result = self.message.check(left.git.message)
            return about(result, f"{self.name} message", "the message of the last commit")
        git = left.git
        if self.branch:
            holds = matches(git.branch, self.branch)
            what = f" branch {self.branch}: it is {git.branch or 'none (detached HEAD)'}"
        elif self.staged:
            holds = any(matches(name, self.staged) for name in git.staged)
            what = f" staged {self.staged}: {', '.join(git.staged) or 'nothing'} is staged"
        else:
            holds = (not git.status) is self.clean
            dirty = f"uncommitted: {', '.join(map(quoted, git.status))}"
            what = f" clean {str(self.clean).lower()}: {dirty if git.status else 'it is clean'}"
        return (passed if holds else failed)(self.name, what)


OfWorkspace = FileExists | InFile | Git
"""A check that is decided from what an agent left in its workspace, by its `check_left`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsCommand(Check):
    """A check that a shell command ends as expected in the workspace, with its repository."""

    name: ClassVar[str] = "command"

    command: str
    exit_code: int = 0
    output: tuple[TextCheck, ...] = ()
    """Checks of what it prints, each with a result of its own."""

    def decide(self, left: Left, sandbox: Sandbox) -> Iterator[CheckResult]:
        """Run the command in a copy of the workspace.

        Raises:
            CheckError: The session ended first, or a check of the output cannot be decided.
            SandboxError: The sandbox cannot start it.
        """
        # Imported late: most cases run nothing.
        from pytest_upskill.sandbox.run import workspace
        from pytest_upskill.sandbox.shell import WORK, Shell

        files = {f"{WORK}/{file.name}": file.content for file in left.all_files}
        with workspace() as home:
            shell = Shell(sandbox, home, files)
            if left.repository:
                # Git needs these folders, and a record has no empty ones.
                for name in ("objects", "refs"):
                    (shell.folder / ".git" / name).mkdir(exist_ok=True)
            outcome = shell.bash(self.command)
        if outcome.ended == "stopped":
            raise CheckError("the session ended before the check was decided")
        last = outcome.output.rstrip().rpartition("\n")[2]
        if outcome.ended == "exited" and outcome.returncode == self.exit_code:
            yield passed(self.name, f" {quoted(self.command)}: {outcome.how}")
        else:
            lacks = ", without .git, which is too large" * bool(left.git and not left.repository)
            what = f" {quoted(self.command)}: {outcome.how}, not {self.exit_code}{lacks}: {last}"
            yield failed(self.name, what.removesuffix(": "), detail=outcome.output[-4000:].strip())
        for check in self.output:
            result = check.check(outcome.output)
            yield about(result, f"{self.name} {quoted(self.command, 30)}", "the output")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCheck:
    """A statement on what the agent did, which is reported but decides nothing.

    Only an agent that has the skill can pass it, so it must never enter a pass rate or a lift.
    """

    name: Literal["triggered", "read_file", "ran_script"]
    file: str = ""
    """The file of the skill; empty for ``triggered``."""


def is_safe_name(name: str) -> bool:
    """Return whether a name is a relative path of printable characters that leads nowhere else."""
    parts = name.split("/")
    return (
        0 < len(name) <= _LONGEST_NAME
        and name.isprintable()
        and "\\" not in name
        and all(part not in {"", ".", ".."} for part in parts)
    )


def matches(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern, in which only ``*`` and ``?`` are wildcards.

    As in a shell, ``**/`` stands for any folders, also for none.
    """
    pattern = pattern.removeprefix("./").replace("[", "[[]")
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))


def _matching(pattern: str, files: Iterable[str]) -> list[str]:
    return sorted(name for name in files if matches(name, pattern))


def _summary(left: Left) -> str:
    """Return in a few words what there is, and what is left out."""
    left_out = f"; left out: {listed(left.left_out)}" if left.left_out else ""
    return (listed(sorted(left.files), _MAX_NAMES) or "no files") + left_out
