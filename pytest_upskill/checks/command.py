"""A command in a copy of what an agent left: its exit status and its output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_upskill.checks.files import Left
from pytest_upskill.checks.result import Check, CheckResult, Key, about, failed, passed, quoted

if TYPE_CHECKING:
    from pytest_upskill.sandbox.run import Sandbox

_MAX_DETAIL = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsCommand(Key):
    """A check that a shell command ends as expected in the workspace, with its repository."""

    name: ClassVar[str] = "command"
    also_called = "commands shell exec_command program cmd"

    command: str
    exit_code: int = 0
    output: tuple[Check, ...] = ()
    """Checks of what it prints, each with a result of its own."""

    def decide(self, left: Left, sandbox: Sandbox) -> Iterator[CheckResult]:
        """Run the command in a copy of the workspace.

        Raises:
            CheckError: A check of the output cannot be decided.
            SandboxError: The sandbox cannot start it.
        """
        # Imported late: most cases run nothing.
        from pytest_upskill.sandbox.shell import WORK, Shell
        from pytest_upskill.sandbox.workspace import workspace

        files = {f"{WORK}/{file.name}": file.content for file in left.all_files}
        with workspace() as home:
            shell = Shell(sandbox, home, files)
            if left.repository:
                # Git needs these folders, and a record has no empty ones.
                for name in ("objects", "refs"):
                    (shell.folder / ".git" / name).mkdir(exist_ok=True)
            outcome = shell.bash(self.command)
        ended = f"exit status {outcome.returncode}"
        if outcome.ended != "exited":
            ended = f"ended by a limit of {'time' if outcome.ended == 'timeout' else outcome.ended}"
        last = outcome.output.rstrip().rpartition("\n")[2]
        if outcome.ended == "exited" and outcome.returncode == self.exit_code:
            yield passed(self.name, f" {quoted(self.command)}: {ended}")
        else:
            lacks = ", without .git, which is too large" * bool(left.git and not left.repository)
            what = f" {quoted(self.command)}: {ended}, not {self.exit_code}{lacks}: {last}"
            yield failed(
                self.name, what.removesuffix(": "), detail=outcome.output[-_MAX_DETAIL:].strip()
            )
        for check in self.output:
            result = check.check(outcome.output)
            yield about(result, f"{self.name} {quoted(self.command, 30)}", "the output")
