"""A request: everything that is sent for one completion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.model import Model

MAX_TURNS = 20
"""Maximum number of turns of an agent if the case sets none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a model may call."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(hash=False)
    """JSON Schema of its arguments, an object."""

    @classmethod
    def of_texts(cls, name: str, description: str, /, **arguments: str) -> Tool:
        """Return a tool whose arguments are texts, all required.

        Args:
            name: Name of the tool.
            description: What it does.
            arguments: Description of each argument, by name.
        """
        properties = {key: {"type": "string", "description": arguments[key]} for key in arguments}
        schema = {"type": "object", "properties": properties, "required": [*arguments]}
        return cls(name=name, description=description, schema=schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool call."""

    call_id: str
    text: str
    failed: bool = False
    """Whether ``text`` says why the call failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A reply that called tools, and the results of its calls, one for each, in their order."""

    assistant_blocks: tuple[Mapping[str, Any], ...] = field(hash=False)
    """`Completion.assistant_blocks` of the reply, unchanged."""
    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledSkill:
    """A skill that is installed for an agent."""

    name: str
    files: tuple[WorkspaceFile, ...]

    @property
    def folder(self) -> str:
        """Name of the folder to install the skill in: a skill's name may be any text."""
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.name)
        return safe.strip(".") or "skill"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTask:
    """What an agent gets besides the user's message."""

    workspace: tuple[WorkspaceFile, ...] = ()
    """The files in its workspace, identical in all arms."""
    skill_name: str = ""
    """Name of the skill to install; "" in the ``without_skill`` arm."""
    skill: tuple[WorkspaceFile, ...] = ()
    """The files of the skill's folder; empty in the ``without_skill`` arm."""
    max_turns: int = MAX_TURNS
    """Maximum number of turns, that is, of replies of the model."""
    chooses: bool = False
    """Whether the run ends as soon as the model chooses a skill, or has used its turns."""
    neighbours: tuple[InstalledSkill, ...] = ()
    """Other skills to install, among which the model chooses."""

    @property
    def installed(self) -> tuple[InstalledSkill, ...]:
        """All skills to install."""
        return (*([self._own] if self.skill else []), *self.neighbours)

    @property
    def skill_folder(self) -> str:
        """Name of the folder to install the skill in."""
        return self._own.folder

    @property
    def _own(self) -> InstalledSkill:
        return InstalledSkill(name=self.skill_name, files=self.skill)

    def name_of(self, name: str) -> str:
        """Return the name of the skill that is asked for by its name or its folder."""
        found = (each.name for each in self.installed if name in {each.name, each.folder})
        return next(found, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Everything that is sent for one completion.

    The arms of a case differ only in ``skill``: ``frame``, ``user`` and the parameters are
    identical in all arms.
    """

    model: Model
    frame: str
    """System text of every arm."""
    skill: str
    """Skill block after ``frame``; "" in the ``without_skill`` arm."""
    user: str
    """The user's message."""
    max_tokens: int
    """Maximum number of tokens to generate."""
    run: int
    """Index of the run, from 0; part of the identity, so that each run has its own answer."""
    draw: int = 0
    """Tells the cases of a skill that ask the same apart; part of the identity as well."""
    tools: tuple[Tool, ...] = ()
    """Tools that the model may call; none for a plain question."""
    turns: tuple[Turn, ...] = ()
    """What followed the user's message so far."""
    task: AgentTask | None = None
    """What an agent gets; None for a single request."""

    @property
    def seed(self) -> int | None:
        """Seed to send, another one in each run and draw; None if none was chosen."""
        return self.model.parameters.seed_of(self.run, self.draw)

    @property
    def system(self) -> str:
        """The whole system prompt."""
        return self.frame + self.skill
