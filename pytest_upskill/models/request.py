"""A request, everything that is sent to get one completion, and the client that sends it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

from pytest_upskill.checks.files import NO_SETUP, Setup, WorkspaceFile
from pytest_upskill.models.completion import Completion
from pytest_upskill.models.model import Model
from pytest_upskill.models.parameters import MAX_SEED

MAX_TURNS = 20
"""Maximum number of turns of an agent if the case sets none."""


_SEEDS_PER_DRAW = 100_000
"""More than a trial has runs, so that cases with the same question never send the same seed."""


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
    """A reply that called tools, and the result of each call, in the order of the calls."""

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
        """Name of the folder to install the skill in, which is safe whatever the skill's name."""
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.name)
        return safe.strip(".") or "skill"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTask:
    """What an agent gets besides the user's message."""

    workspace: tuple[WorkspaceFile, ...] = ()
    """The files in its workspace, identical in all arms."""
    setup: Setup = NO_SETUP
    """What is done in the workspace before it starts."""
    skill_name: str = ""
    """Name of the skill to install; "" in the ``without_skill`` arm."""
    skill: tuple[WorkspaceFile, ...] = ()
    """The files of the skill's folder; empty in the ``without_skill`` arm."""
    max_turns: int = MAX_TURNS
    """Maximum number of turns, that is, replies of the model."""
    chooses: bool = False
    """Whether the run ends as soon as the model chooses a skill, or has used its turns."""
    neighbours: tuple[InstalledSkill, ...] = ()
    """Other skills to install, among which the model chooses."""

    @property
    def installed(self) -> tuple[InstalledSkill, ...]:
        """All skills to install, the one under test first."""
        own = InstalledSkill(name=self.skill_name, files=self.skill)
        return (own, *self.neighbours) if self.skill else self.neighbours

    def skill_named(self, name_or_folder: str) -> str:
        """Return the name of the installed skill with a name or folder, or else the argument."""
        for skill in self.installed:
            if name_or_folder in {skill.name, skill.folder}:
                return skill.name
        return name_or_folder


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
    """Number of earlier cases of the skill with an equal input; part of the identity as well."""
    tools: tuple[Tool, ...] = ()
    """Tools that the model may call."""
    turns: tuple[Turn, ...] = ()
    """The conversation after the user's message so far."""
    task: AgentTask | None = None
    """The task of an agent; None for a single request."""

    @property
    def seed(self) -> int | None:
        """Seed to send, different in each run and draw; None if the user chose none."""
        first = self.model.parameters.seed
        if first is None:
            return None
        return (first + self.run + self.draw * _SEEDS_PER_DRAW) % (MAX_SEED + 1)

    @property
    def system(self) -> str:
        """The whole system prompt."""
        return self.frame + self.skill


class Client(Protocol):
    """A client of one endpoint; a session has one of each, used on one event loop.

    A plugin's client that sends `Request.tools` and `Request.turns` and reads tool calls sets
    ``accepts_tools = True``; one that sends `Model.parameters` sets ``accepts_parameters = True``.
    """

    async def complete(self, request: Request) -> Completion:
        """Send a request once, without retries, and return the completion.

        Raises:
            ProviderError: There is no usable reply.
        """

    async def aclose(self) -> None:
        """Close the connections."""


class BatchStatus(NamedTuple):
    """How far a batch is."""

    ended: bool
    done: int
    """Number of its requests that are no longer waiting."""


class BatchApi(Protocol):
    """A client that can send requests in batches; each is named by an id of the caller."""

    async def submit(self, requests: Mapping[str, Request], model: Model) -> str:
        """Send requests to one model as a batch, and return its id.

        Raises:
            ProviderError: There is no batch; the status is 404 or 405 if the host has none at all.
        """

    async def status(self, batch: str, model: Model) -> BatchStatus:
        """Return how far a batch to a model is.

        Raises:
            ProviderError: There is no usable reply.
        """

    async def results(
        self, batch: str, names: Iterable[str], model: Model
    ) -> Mapping[str, Completion | ProviderError]:
        """Return what became of the requests of a batch that has ended, by their ids.

        Those that the host has not processed may be missing.

        Raises:
            ProviderError: There is no usable reply.
        """

    async def cancel(self, batch: str, model: Model) -> None:
        """Cancel a batch; what is done by then is billed.

        Raises:
            ProviderError: There is no usable reply.
        """


class ProviderError(Exception):
    """A request without a usable reply; its run counts as missing, not as failed.

    Attributes:
        status: HTTP status, None without a reply.
        retryable: Whether a retry may succeed.
        retry_after: Seconds to wait before a retry, as the server requests; None if it does not.
        fatal: Whether every further request to this model would fail too (bad key, no model).
        billable: Whether the host may bill the request; by default True, unless the status is that
            of an HTTP error.
        paid: The tokens and cost of earlier requests of the same run, None if there were none.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        fatal: bool = False,
        billable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.fatal = fatal
        self.billable = status in {None, HTTPStatus.OK} if billable is None else billable
        self.paid: Completion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits of a run of an agent, besides turns, which its case sets, and cost: see `Budget`.

    A run that would exceed one fails and names it.
    """

    requests: int = 40
    tokens: int = 500_000
    """Tokens of all prompts and answers."""
    seconds: float = 300.0
    """Time of the agent and its tools, without the time that the provider takes."""
