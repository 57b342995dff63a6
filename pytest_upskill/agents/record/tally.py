"""What the exchanges of one run with its model have come to so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from pytest_upskill.agents.record.skill_use import (
    broken_reason,
    files_read,
    is_loaded,
    is_offered,
    is_partly_loaded,
    recorded_calls,
)
from pytest_upskill.completion import AgentRun, AgentTask, Completion, ToolCall, with_totals
from pytest_upskill.spending.caps import Caps
from pytest_upskill.spending.prices import BYTES_PER_TOKEN

_NO_REPLY = Completion(text="", input_tokens=0, output_tokens=0, cost_usd=0.0)


@dataclass(slots=True, kw_only=True)
class RunTally:
    """The exchanges of one run so far: replies, tokens, and whether the skill was seen."""

    task: AgentTask
    skill_of: Callable[[ToolCall], str | None]
    """Returns the skill that a call asks for, by its name or its folder; None for none."""
    is_denied: Callable[[ToolCall, str], bool]
    """Returns whether the result of a call of the skill, without a line of it, shows a defect."""
    caps: Caps = field(default_factory=Caps)
    offered: bool | None = None
    loaded: bool | None = None
    """Whether the skill's instructions were in a request; None if that is unknown."""
    called: bool = False
    """Whether the model asked for the skill and went on after the result."""
    denied: bool = False
    """Whether a result shows that the skill could not be loaded."""
    read: set[str] = field(default_factory=set)
    requests: int = 0
    replies: list[Completion] = field(default_factory=list)
    """Those of the conversation."""
    asides: list[Completion] = field(default_factory=list)
    """Replies to side questions of the agent's, such as for a title."""
    tokens: int = 0
    """Tokens of all exchanges, estimated where they were not counted."""
    following: int = 0
    """Tokens of the conversation, with which its next prompt begins."""

    def note_request(self, texts: Sequence[str], results: Iterable[tuple[str, str]]) -> None:
        """Note which parts of the skill the next prompt of the conversation contains.

        Args:
            texts: All of its texts that may quote the skill.
            results: The results of calls, each with the id of its call.
        """
        if not self.task.skill:
            return
        if self.offered is None:
            self.offered = is_offered(self.task, texts)
        self.loaded = self.loaded or is_loaded(self.task, texts)
        self.read.update(files_read(self.task, texts))
        last = self.replies[-1].tool_calls if self.replies else ()
        own = {call.id: call for call in last if self._calls_skill(call)}
        self.called = self.called or bool(own)
        # A long conversation is searched only after a call of the skill.
        for call_id, result in results if own else ():
            if call_id not in own:
                continue
            if is_partly_loaded(self.task, result):
                self.loaded = True
            self.denied = self.denied or self.is_denied(own[call_id], result)

    def note_reply(self, completion: Completion, size: int, *, aside: bool = False) -> None:
        """Note a reply.

        Args:
            completion: The reply, with its price.
            size: Bytes of its prompt.
            aside: Whether it answers a side question, and is no part of the conversation.
        """
        counted = completion.tokens
        if counted is None:
            counted = (size + len(completion.text)) // BYTES_PER_TOKEN
        self.tokens += counted
        if aside:
            self.asides.append(completion)
        else:
            self.replies.append(completion)
            self.following = counted

    @property
    def chosen_skill(self) -> str:
        """The first skill that the model asked for; "" for none."""
        return self.task.name_of(next(filter(None, map(self.skill_of, self._calls)), ""))

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

    def limit(self) -> str:
        """Return which limit the next request would exceed, "" for none."""
        return self.caps.exceeded_limit(
            turns=len(self.replies),
            max_turns=self.task.max_turns,
            requests=self.requests,
            tokens=self.tokens,
            prefix_tokens=self.following,
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
            read=tuple(sorted(self.read)),
            calls=recorded_calls(self._calls),
            limit=limit,
            broken=broken_reason(self.task, offered=self.offered, denied=denied),
        )

    def completion(self, run: AgentRun | None = None) -> Completion:
        """Return the last reply of the conversation, with tokens, cost and seconds of them all."""
        parts = [*self.asides, *(self.replies or [_NO_REPLY])]
        retries = sum(each.attempts - 1 for each in parts)
        return replace(with_totals(parts), attempts=1 + retries, tool_calls=(), agent_run=run)

    @property
    def _calls(self) -> list[ToolCall]:
        return [call for reply in self.replies for call in reply.tool_calls]

    def _calls_skill(self, call: ToolCall) -> bool:
        name = self.skill_of(call)
        return name is not None and self.task.name_of(name) == self.task.skill_name
