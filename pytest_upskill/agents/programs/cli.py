"""The interface of the adapters of agents' command-line programs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_upskill.completion import Request, ToolCall
from pytest_upskill.wire.stream import AgentFormat


class NoAgentError(Exception):
    """An agent that cannot run here; the message says in one line what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A program that is installed on this machine."""

    program: Path
    """The executable, no link."""
    folder: Path
    """What the program needs to read; the executable itself if that is all."""
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a run."""

    arguments: tuple[str, ...]
    """Arguments of the program; the prompt is its standard input."""
    environment: Mapping[str, str]
    home: Mapping[str, str] = field(default_factory=dict)
    """Files below the home folder: name to text."""


class Cli(Protocol):
    """The adapter of one program: how it is found, started and read."""

    name: str
    """The prefix of models that use it."""
    tested: str
    """The version that the adapter was written for."""
    wire: AgentFormat
    skills: str
    """The folder, below the home folder, where it looks for skills."""

    def find(self) -> Installed:
        """Find the program.

        Raises:
            NoAgentError: It is not installed; the message says how to install it.
        """
        ...

    def launch(self, request: Request, base_url: str) -> Launch:
        """Return how to start a run.

        Args:
            request: The request of the run.
            base_url: The address of the proxy in the sandbox, without a path.
        """
        ...

    def skill_of(self, call: ToolCall) -> str | None:
        """Return the skill that a call asks for, by its name or its folder; None for none."""
        ...

    def denies(self, call: ToolCall, result: str) -> bool:
        """Return whether the result of a call without a line of the skill shows a defect.

        Otherwise the model saw as much of the skill as it asked for.
        """
        ...

    def rehearsal(self, skill: str) -> list[Mapping[str, Any]]:
        """Return calls (``name`` and ``input``) that load the skill, then write ``done.txt``.

        They are what a model would call; the self-test of a version makes them.
        """
        ...


_UNREADABLE = re.compile(
    r"no such file|permission denied|not found|cannot (open|access|read)", re.IGNORECASE
)


def skill_read(call: ToolCall, skills: str) -> str | None:
    """Return the folder of the skill whose instructions a call names as a file, None for none.

    Args:
        call: A call of any tool.
        skills: The folder where skills are installed, below the home folder.
    """
    said = call.malformed or json.dumps(call.arguments, ensure_ascii=False)
    found = re.search(rf"{re.escape(skills)}/([^/\\\s\"']+)/SKILL\.md", said)
    return found[1] if found else None


def is_unreadable(result: str) -> bool:
    """Return whether a command says that a file cannot be read."""
    return _UNREADABLE.search(result) is not None
