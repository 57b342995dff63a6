"""Request and completion, and the client that turns one into the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import BeforeValidator, Field

from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.model import Model

_Number = TypeVar("_Number", int, float)

StopReason = Literal["end", "max_tokens", "refusal", "other"]

MAX_TOKENS_COUNTED = 10**9
"""Maximum of a plausible token count; a larger one is an error of the server."""

MAX_TURNS = 20
"""Maximum number of turns of an agent if the case sets none."""

MAX_RUN_REQUESTS = 40
"""Maximum number of requests in one run of an agent."""

MAX_RUN_TOKENS = 500_000
"""Maximum number of tokens in one run of an agent, prompts and answers together."""

# These bounds are validated in completions from JSON and from plugins.
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS_COUNTED)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Attempts = Annotated[int, Field(ge=1, le=MAX_TOKENS_COUNTED)]


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
class ToolCall:
    """A model's call of a tool."""

    name: str
    id: str = ""
    """The server's name of this call, to which the result refers."""
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    malformed: str = ""
    """The arguments as the model wrote them, if they are no JSON object; "" if they are one."""


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
    """Whether the run ends as soon as the model takes a skill, or has used its turns."""
    neighbours: tuple[InstalledSkill, ...] = ()
    """Other skills to install, among which the model chooses."""

    @property
    def installed(self) -> tuple[InstalledSkill, ...]:
        """All skills to install."""
        own = InstalledSkill(name=self.skill_name, files=self.skill)
        return (*([own] if self.skill else []), *self.neighbours)

    @property
    def skill_folder(self) -> str:
        """Name of the folder to install the skill in."""
        return InstalledSkill(name=self.skill_name, files=self.skill).folder

    def name_of(self, asked: str) -> str:
        """Return the name of the skill that is asked for by its name or its folder."""
        found = (each.name for each in self.installed if asked in {each.name, each.folder})
        return next(found, asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One call of a tool by the model of an agent."""

    name: str
    input: str
    """The arguments as JSON or text, cut to a length that a record can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    """What an agent did in one run, as read from its exchanges and from its workspace."""

    version: str
    """Version of the agent."""
    changed: tuple[WorkspaceFile, ...] = ()
    """The files that it created or changed."""
    deleted: tuple[str, ...] = ()
    """Names of the files that it deleted."""
    turns: int = 0
    requests: int = 0
    offered: bool | None = None
    """Whether the skill's description was in a request; None if that is unknown."""
    called: bool = False
    """Whether the model asked for the skill by name."""
    taken: str = ""
    """The first skill that the model asked for in a run that ends there; "" for none."""
    loaded: bool | None = None
    """Whether the body of the skill was in a request; None if that is unknown."""
    read: tuple[str, ...] = ()
    """Other files of the skill that were in a request."""
    calls: tuple[ToolUse, ...] = ()
    """The calls of tools, in order."""
    limit: str = ""
    """The limit that ended the run, which is then a miss; "" for none."""
    broken: str = ""
    """Why the run measures nothing, such as a skill that was called but not loaded; "" if not."""


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
    tools: tuple[Tool, ...] = ()
    """Tools that the model may call; none for a plain question."""
    turns: tuple[Turn, ...] = ()
    """What followed the user's message so far."""
    task: AgentTask | None = None
    """What an agent gets; None for a single request."""

    @property
    def system(self) -> str:
        """The whole system prompt."""
        return self.frame + self.skill


def _named_call(call: object) -> object:
    """Return a tool call of a recording made before calls had arguments: only its name."""
    return {"name": call} if isinstance(call, str) else call


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The answer of a model in one run."""

    text: str
    """The answer without reasoning, which is graded."""
    input_tokens: Tokens | None
    """All prompt tokens, including cached ones; None if the server does not count them."""
    output_tokens: Tokens | None
    """All generated tokens, including reasoning; None if the server does not count them."""
    cache_read_tokens: Tokens = 0
    cache_write_tokens: Tokens = 0
    stop_reason: StopReason = "end"
    reasoning: str = ""
    """The visible reasoning before the answer."""
    tool_calls: tuple[Annotated[ToolCall, BeforeValidator(_named_call)], ...] = ()
    """Calls of tools, also if the request offered none."""
    assistant_blocks: Annotated[tuple[Mapping[str, Any], ...], Field(exclude=True, repr=False)] = (
        field(default=(), hash=False)
    )
    """The reply in its wire format, to be sent back in a `Turn`; empty unless tools were offered.

    Not in reports: whatever they tell of a reply is in the other fields.
    """
    served_model: str | None = None
    """The model id in the reply."""
    request_id: str | None = None
    latency_s: Amount = 0.0
    """Seconds from sending the successful attempt to the end of its reply."""
    attempts: Attempts = 1
    """Number of attempts, including the successful one."""
    cost_usd: Amount | None = None
    """Cost of the successful attempt in dollars; None if the price is unknown."""
    replayed: bool = False
    """Whether the answer is a cache hit, with the tokens, cost and seconds of the recording."""
    agent_run: AgentRun | None = None
    """What the agent did whose last message is ``text``; None for a single request."""

    @property
    def tokens(self) -> int | None:
        """Tokens of prompt and answer together, None if either count is missing."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


class Client(Protocol):
    """A client of one endpoint; there is one per session, used on one event loop.

    A client of a plugin that sends `Request.tools` and `Request.turns`, and reads tool calls, has
    an attribute ``accepts_tools`` that is True; one that sends `Model.parameters` has
    ``accepts_parameters``.
    """

    async def complete(self, request: Request) -> Completion:
        """Send a request once, without retries, and return the completion.

        Raises:
            ProviderError: There is no usable reply.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


def with_totals(completions: Sequence[Completion]) -> Completion:
    """Return the last of a run's completions with the tokens, cost and seconds of all of them.

    A sum is None if one of its parts is.
    """
    return replace(
        completions[-1],
        input_tokens=_total([each.input_tokens for each in completions]),
        output_tokens=_total([each.output_tokens for each in completions]),
        cache_read_tokens=sum(each.cache_read_tokens for each in completions),
        cache_write_tokens=sum(each.cache_write_tokens for each in completions),
        latency_s=sum(each.latency_s for each in completions),
        cost_usd=_total([each.cost_usd for each in completions]),
        assistant_blocks=(),
    )


def _total(parts: Sequence[_Number | None]) -> _Number | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def clean(text: str) -> str:
    """Return a text without lone surrogates, which cannot be encoded as UTF-8."""
    return text.encode("utf-8", "replace").decode()


class ProviderError(Exception):
    """A request without a usable reply; its run counts as missing, not as failed.

    Attributes:
        status: HTTP status, None without a reply.
        retryable: Whether a retry may succeed.
        retry_after: Seconds to wait before a retry, as the server requests; None if it does not.
        fatal: Whether every further request to this model would fail too (bad key, no model).
        loading: Whether the host is still loading the model.
        timed_out: Whether no reply came within the timeout.
        of_request: Whether it is due to this request's length or tools, so that others may succeed.
        billable: Whether the host may bill the request; by default, unless it replied with an HTTP
            error.
        paid: What earlier requests of the same run have cost, None if there were none.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        fatal: bool = False,
        loading: bool = False,
        timed_out: bool = False,
        of_request: bool = False,
        billable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.fatal = fatal
        self.loading = loading
        self.timed_out = timed_out
        self.of_request = of_request
        self.billable = status in {None, HTTPStatus.OK} if billable is None else billable
        self.paid: Completion | None = None
