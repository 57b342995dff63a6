"""A completion: the answer of a model in one run, and what an agent did for it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from pytest_upskill.checks.calls import ToolUse
from pytest_upskill.checks.files import GitState, WorkspaceFile

_Number = TypeVar("_Number", int, float)

StopReason = Literal["end", "max_tokens", "refusal", "other"]

MAX_TOKENS_COUNTED = 10**9
"""Maximum of a plausible token count; a larger one is an error of the server."""

# These bounds are validated in completions from JSON and from plugins.
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS_COUNTED)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's call of a tool."""

    name: str
    id: str = ""
    """The server's name of this call, to which the result refers."""
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    malformed: str = ""
    """The arguments as the model wrote them, if they are not a JSON object; "" if they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTurn:
    """One reply of an agent's model."""

    text: str = ""
    """What it says, cut to a length that a record can hold."""
    calls: tuple[ToolUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    """What an agent did in one run, as its requests, replies and workspace show it."""

    version: str
    """Version of the agent."""
    changed: tuple[WorkspaceFile, ...] = ()
    """The files that it created or changed."""
    edits: tuple[WorkspaceFile, ...] = ()
    """For each of these that was there before, the unified diff, cut to a limit."""
    deleted: tuple[str, ...] = ()
    """Names of the files that it deleted."""
    of_setup: tuple[str, ...] = ()
    """Names of those that the setup had changed or deleted in this way before it started."""
    git: GitState | None = None
    """The state of the git repository in the workspace; None without one."""
    repository: tuple[WorkspaceFile, ...] = ()
    """The files below ``.git``."""
    left_out: tuple[str, ...] = ()
    """What else is in the workspace, with the reason why it is not in the record."""
    turns: tuple[AgentTurn, ...] = ()
    """What its model said and called, reply by reply."""
    requests: int = 0
    fields_left_out: tuple[str, ...] = ()
    """Fields and tools of its requests that were not passed on to the host."""
    offered: bool | None = None
    """Whether the skill's description was in a request; None if that is unknown."""
    called: bool = False
    """Whether the model asked for the skill by name."""
    taken: str = ""
    """The skill that the model asked for, in a run that ends with its choice; "" for none."""
    loaded: bool | None = None
    """Whether the body of the skill was in a request; None if that is unknown."""
    read: tuple[str, ...] = ()
    """Other files of the skill that were in a request."""
    limit: str = ""
    """The limit that ended the run, which is then a miss; "" for none."""
    broken: str = ""
    """Why the run measures nothing, such as a skill that was called but not loaded; "" if not."""

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        """The calls of tools, in order."""
        return tuple(call for turn in self.turns for call in turn.calls)


@dataclass(frozen=True, slots=True)
class Look:
    """The look at a verdict for which an answer was requested."""

    number: Annotated[int, Field(ge=1)]
    """1 for the first, and one more each time that runs are added to recorded ones."""
    runs: Annotated[int, Field(ge=1)]
    """Number of runs that each trial was to have then."""


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
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls of tools, also if the request offered none."""
    assistant_blocks: Annotated[tuple[Mapping[str, Any], ...], Field(exclude=True, repr=False)] = (
        field(default=(), hash=False)
    )
    """The reply in its wire format, to be sent back in a `Turn`; empty unless tools were offered.

    Reports leave it out, as they show the other fields.
    """
    served_model: str | None = None
    """The model id in the reply."""
    request_id: str | None = None
    latency_s: Amount = 0.0
    """Seconds from sending the successful attempt to the end of its reply."""
    attempts: Annotated[int, Field(ge=1, le=MAX_TOKENS_COUNTED)] = 1
    """Number of attempts, including the successful one."""
    cost_usd: Amount | None = None
    """Cost of the successful attempt in dollars; None if the price is unknown."""
    replayed: bool = False
    """Whether the answer is a cache hit, with the tokens, cost and seconds of the recording."""
    agent_run: AgentRun | None = None
    """What the agent did before its last message, which is ``text``; None for a single request."""
    look: Look | None = None
    """The look that it was requested for; None for what is no run of a trial."""

    @property
    def tokens(self) -> int | None:
        """Tokens of prompt and answer together, None if either count is missing."""
        return sum_if_known((self.input_tokens, self.output_tokens))


def with_totals(completions: Sequence[Completion]) -> Completion:
    """Return the last completion of a run with the tokens, cost and seconds of all its completions.

    A sum is None if one of its parts is.
    """
    return replace(
        completions[-1],
        input_tokens=sum_if_known(completion.input_tokens for completion in completions),
        output_tokens=sum_if_known(completion.output_tokens for completion in completions),
        cache_read_tokens=sum(completion.cache_read_tokens for completion in completions),
        cache_write_tokens=sum(completion.cache_write_tokens for completion in completions),
        latency_s=sum(completion.latency_s for completion in completions),
        cost_usd=sum_if_known(completion.cost_usd for completion in completions),
        assistant_blocks=(),
    )


def sum_if_known(amounts: Iterable[_Number | None]) -> _Number | None:
    """Return a sum; None if an amount is unknown."""
    known = list(amounts)
    return None if None in known else sum(amount or 0 for amount in known)


def clean(text: str) -> str:
    """Return a text without lone surrogates, which cannot be encoded as UTF-8."""
    return text.encode("utf-8", "replace").decode()
