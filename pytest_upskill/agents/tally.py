"""The exchanges of one run with its model so far, and the record that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from pytest_upskill.agents.skill_use import (
    broken_reason,
    files_read,
    is_loaded,
    is_offered,
    is_partly_loaded,
    recorded_calls,
)
from pytest_upskill.answers.prices import BYTES_PER_TOKEN
from pytest_upskill.answers.run_limits import RunLimits
from pytest_upskill.models import AgentRun, AgentTask, Completion, ToolCall, with_totals


@dataclass(frozen=True, slots=True)
class Finished:
    """The model gave its answer, or chose a skill, or none in all its turns."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The run would have exceeded a limit: the model's miss, which the record names."""

    limit: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The host, the budget or the program ended the run: missing data."""

    error: Exception


RunEnd = Finished | LimitReached | Failed


_NO_REPLY = Completion(text="", input_tokens=0, output_tokens=0, cost_usd=0.0)


@dataclass(slots=True, kw_only=True)
class RunTally:
    """The exchanges of one run so far: replies, tokens, and whether the skill was seen."""

    task: AgentTask
    skill_of: Callable[[ToolCall], str]
    """Returns the skill that a call asks for, by its name or its folder; "" for none."""
    may_be_denied: Callable[[ToolCall, str], bool]
    """See `Cli.may_be_denied`."""
    limits: RunLimits = field(default_factory=RunLimits)
    offered: bool | None = None
    """Whether the catalogue names the skill; None before the first request."""
    loaded: bool | None = None
    """Whether the skill's instructions were in a request; None if that is unknown."""
    called: bool = False
    """Whether the model asked for the skill, and got a result."""
    denied: bool = False
    """Whether a result shows that the skill could not be loaded."""
    read_files: set[str] = field(default_factory=set)
    """Names of the skill's other files that the model has read."""
    requests: int = 0
    replies: list[Completion] = field(default_factory=list)
    """Replies of the conversation."""
    side_replies: list[Completion] = field(default_factory=list)
    """Replies to side questions of the agent, such as one for a title."""
    tokens: int = 0
    """Tokens of all exchanges, estimated where they were not counted."""
    prefix_tokens: int = 0
    """Tokens of the conversation so far, with which its next prompt begins."""

    def note_request(self, texts: Sequence[str], results: Iterable[tuple[str, str]]) -> None:
        """Note which parts of the skill the next prompt of the conversation contains.

        Args:
            texts: All texts of the prompt that may quote the skill.
            results: Pairs of the id of a call and its result.
        """
        if not self.task.skill:
            return
        if self.offered is None:
            self.offered = is_offered(self.task, texts)
        # One search per line of the skill, however many texts there are.
        prompt = ["\n".join(texts)]
        self.loaded = self.loaded or is_loaded(self.task, prompt)
        self.read_files = {*self.read_files, *files_read(self.task, prompt)}
        last_calls = self.replies[-1].tool_calls if self.replies else ()
        skill_calls = {call.id: call for call in last_calls if self._calls_skill(call)}
        if not skill_calls:
            # Spares a search of the results, which may be of a long conversation.
            return
        self.called = True
        for call_id, result in dict(results).items():
            if call_id not in skill_calls:
                continue
            if is_partly_loaded(self.task, result):
                self.loaded = True
            self.denied = self.denied or self.may_be_denied(skill_calls[call_id], result)

    def note_reply(
        self, completion: Completion, prompt_bytes: int, *, in_conversation: bool = True
    ) -> None:
        """Note a reply.

        Args:
            completion: The reply, with its price.
            prompt_bytes: Size of its prompt, from which missing tokens are estimated.
            in_conversation: False for the reply to a side question.
        """
        tokens = completion.tokens
        if tokens is None:
            tokens = (prompt_bytes + len(completion.text)) // BYTES_PER_TOKEN
        self.tokens += tokens
        if in_conversation:
            self.replies.append(completion)
            self.prefix_tokens = tokens
        else:
            self.side_replies.append(completion)

    @property
    def chosen_skill(self) -> str:
        """The first skill that the model asked for; "" for none."""
        return self.task.skill_named(next(filter(None, map(self.skill_of, self._calls)), ""))

    @property
    def has_chosen(self) -> bool:
        """Whether the run ends because the model chose a skill, or none in all its turns."""
        return self.task.chooses and bool(
            self.chosen_skill or len(self.replies) >= self.task.max_turns
        )

    @property
    def has_final_answer(self) -> bool:
        """Whether the last reply of the conversation calls no tool, and so ends the run."""
        return bool(self.replies) and not self.replies[-1].tool_calls

    def exceeded_limit(self) -> str:
        """Return the limit that the next request would exceed, "" for none."""
        return self.limits.exceeded_limit(
            turns=len(self.replies),
            max_turns=self.task.max_turns,
            requests=self.requests,
            tokens=self.tokens,
            prefix_tokens=self.prefix_tokens,
        )

    def run(self, version: str, limit: str) -> AgentRun:
        """Return the run as its exchanges show it, without the files that it left.

        Args:
            version: Version of the agent.
            limit: The limit that ended the run; "" for none.
        """
        denied = self.denied and self.loaded is False
        return AgentRun(
            version=version,
            turns=len(self.replies),
            requests=self.requests,
            offered=self.offered,
            called=self.called,
            taken=self.chosen_skill if self.task.chooses else "",
            loaded=None if self.task.chooses else self.loaded,
            read=tuple(sorted(self.read_files)),
            calls=recorded_calls(self._calls),
            limit=limit,
            broken=broken_reason(self.task, offered=self.offered, denied=denied),
        )

    def completion(self, run: AgentRun | None = None) -> Completion:
        """Return the last reply of the conversation, with the totals of all replies.

        Args:
            run: The record to attach; None while the run has none.
        """
        replies = [*self.side_replies, *(self.replies or [_NO_REPLY])]
        retries = sum(reply.attempts - 1 for reply in replies)
        return replace(with_totals(replies), attempts=1 + retries, tool_calls=(), agent_run=run)

    def paid(self) -> Completion | None:
        """Return what a run that fails has cost so far, None if it got no reply."""
        return self.completion() if self.replies or self.side_replies else None

    @property
    def _calls(self) -> list[ToolCall]:
        return [call for reply in self.replies for call in reply.tool_calls]

    def _calls_skill(self, call: ToolCall) -> bool:
        name = self.skill_of(call)
        return bool(name) and self.task.skill_named(name) == self.task.skill_name
