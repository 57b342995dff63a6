"""Checks of the tools that an agent called."""

import json
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import ClassVar

from pytest_upskill.checks.text import Check, CheckResult, Regex, failed, passed, quoted
from pytest_upskill.project.messages import counted

_SHELLS = frozenset(
    {"bash", "exec_command", "local_shell", "run_shell_command", "shell", "shell_command"}
)
"""Names of the tool that runs commands, which differ between agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One call of a tool by the model of an agent."""

    name: str
    input: str
    """The arguments as JSON or text, cut to a length that a record can hold."""
    result: str = field(default="", compare=False)
    """What the tool returned, cut likewise; it differs between runs that did the same."""

    @property
    def arguments(self) -> dict[str, str]:
        """The arguments as texts, by name; empty if they are no object, or were cut."""
        with suppress(ValueError, AttributeError):
            return {
                name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                for name, value in json.loads(self.input).items()
            }
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOf:
    """Which calls are meant."""

    names: tuple[str, ...] = ("*",)
    """Names of tools, in which ``*`` and ``?`` are wildcards; ``bash`` is any agent's shell."""
    pattern: str = ""
    """A pattern that one of the arguments must contain; "" for any."""

    def matches(self, call: ToolUse) -> bool:
        """Return whether a call is meant.

        Raises:
            CheckError: The search for the pattern takes too long.
        """
        name = call.name.casefold()
        shell = name in _SHELLS and not _SHELLS.isdisjoint(map(str.casefold, self.names))
        if not shell and not any(fnmatchcase(name, each.casefold()) for each in self.names):
            return False
        texts = call.arguments.values() or [call.input]
        return not self.pattern or any(Regex(pattern=self.pattern).check(t).passed for t in texts)

    def needs_skill(self, files: Collection[str]) -> bool:
        """Return whether a call is meant that only an agent with the skill can make.

        Args:
            files: Names of the skill's folder, and of its files in folders.
        """
        named = re.sub(r"\\(.)", r"\1", self.pattern)
        return any(name.casefold() in {"activate_skill", "skill"} for name in self.names) or any(
            file in named for file in ("SKILL.md", *files)
        )

    def __str__(self) -> str:
        names = "|".join(self.names)
        return f"{names} with {quoted(self.pattern)}" if self.pattern else names


@dataclass(frozen=True, slots=True, kw_only=True)
class OfCalls(Check):
    """A check that is decided from the calls of an agent."""

    calls: tuple[CallOf, ...]
    """The calls that it names."""

    def check_calls(self, calls: Sequence[ToolUse]) -> CheckResult:
        """Check the calls of a run.

        Raises:
            CheckError: The search for a pattern takes too long.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(OfCalls):
    """A check of how often a tool was called, the only one that it names."""

    name: ClassVar[str] = "tool_called"
    least: int = 1
    most: int | None = None

    def check_calls(self, calls: Sequence[ToolUse]) -> CheckResult:
        """See `OfCalls.check_calls`."""
        (meant,) = self.calls
        times = sum(map(meant.matches, calls))
        called = f" {meant}: {counted(times, 'call')}"
        if times < self.least:
            return failed(self.name, f"{called}, at least {self.least} wanted")
        if self.most is not None and times > self.most:
            return failed(self.name, f"{called}, at most {self.most} wanted")
        return passed(self.name, called)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOrder(OfCalls):
    """A check that tools were first called in an order."""

    name: ClassVar[str] = "tool_order"

    def check_calls(self, calls: Sequence[ToolUse]) -> CheckResult:
        """See `OfCalls.check_calls`."""
        order = ", ".join(map(str, self.calls))
        before = -1
        for each in self.calls:
            first = next((at for at, call in enumerate(calls) if each.matches(call)), None)
            if first is None:
                return failed(self.name, f" {order}: {each} was never called")
            if first <= before:
                return failed(self.name, f" {order}: {each} was called too early")
            before = first
        return passed(self.name, f" {order}")
