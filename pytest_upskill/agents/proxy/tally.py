"""Totals of the exchanges of one run: tokens, calls, turns, and whether the skill was seen."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_upskill.agents.programs.cli import Cli
from pytest_upskill.agents.record.story import (
    SKILL_FILE,
    files_read,
    is_loaded,
    is_partly_loaded,
    recorded_calls,
    why_broken,
)
from pytest_upskill.completion import AgentRun, AgentTask, Completion, ToolCall
from pytest_upskill.formats.skill_md.frontmatter import read_skill_text
from pytest_upskill.spending.caps import Caps
from pytest_upskill.spending.prices import BYTES_PER_TOKEN

_TELLING_CHARS = 24


@dataclass(slots=True, kw_only=True)
class Tally:
    """The sums over the exchanges of one run so far."""

    task: AgentTask
    cli: Cli
    caps: Caps = field(default_factory=Caps)
    requests: int = 0
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    uncounted: bool = False
    """Whether a reply did not count its tokens."""
    cost_usd: float | None = 0.0
    waited_s: float = 0.0
    """Seconds spent waiting for the host, which do not count as the agent's time."""
    offered: bool | None = None
    loaded: bool | None = None
    """Whether the skill's instructions were in a request; None if it has none."""
    called: bool = False
    """Whether the model asked for the skill and went on after the result."""
    denied: bool = False
    """Whether the result shows that the skill could not be loaded."""
    taken: str = ""
    """The first skill that the model asked for; "" for none."""
    served_model: str | None = None
    """The model id in the last reply of the conversation that has one."""
    read: set[str] = field(default_factory=set)
    calls: list[ToolCall] = field(default_factory=list)
    last: Completion | None = None
    """The last reply of the conversation."""
    _size: int = 0
    """Bytes of the last request."""
    _tokens: int = 0
    """Tokens so far, estimated where they were not counted."""
    _following: int = 0
    """Tokens of the conversation, with which its next prompt begins."""

    def asked(self, body: Mapping[str, Any], size: int) -> None:
        """Count a request, and note which parts of the skill it contains.

        Args:
            body: The request.
            size: Bytes of the request.
        """
        self.requests += 1
        self._size = size
        if not body.get("tools"):
            return  # a side question of the agent's, such as for a title
        self.turns += 1
        if not self.task.skill:
            return
        texts = tuple(_texts(body))
        if self.offered is None:
            self.offered = _is_offered(self.task, texts)
        self.loaded = self.loaded or is_loaded(self.task, texts)
        self.read.update(files_read(self.task, texts))
        if self.last is not None:
            self._see_results(self.last.tool_calls, body)

    def answered(self, completion: Completion, *, main: bool, cost_usd: float | None) -> None:
        """Count a reply.

        Args:
            completion: The reply.
            main: Whether it belongs to the conversation, not to a side question.
            cost_usd: Its price; None if that is unknown.
        """
        counted = completion.tokens
        if counted is None:
            self.uncounted = True
            counted = (self._size + len(completion.text)) // BYTES_PER_TOKEN
        else:
            self.input_tokens += completion.input_tokens or 0
            self.output_tokens += completion.output_tokens or 0
        self.cache_read_tokens += completion.cache_read_tokens
        self.cache_write_tokens += completion.cache_write_tokens
        known = self.cost_usd is not None and cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (cost_usd or 0.0) if known else None
        self._tokens += counted
        if main:
            self.last = completion
            self.served_model = completion.served_model or self.served_model
            self._following = counted
            self.calls += completion.tool_calls
            asked = filter(None, map(self.cli.skill_of, completion.tool_calls))
            self.taken = self.taken or self.task.name_of(next(asked, ""))

    @property
    def decided(self) -> bool:
        """Whether the run has ended because the model chose a skill, or none in all its turns."""
        ended = bool(self.taken) or self.turns >= self.task.max_turns
        return self.task.chooses and self.last is not None and ended

    @property
    def answered_whole(self) -> bool:
        """Whether the last reply of the conversation calls no tool, and so ends the run."""
        return self.last is not None and not self.last.tool_calls

    def limit(self) -> str:
        """Return which limit the next request would exceed, "" for none."""
        return self.caps.reached(
            turns=self.turns,
            max_turns=self.task.max_turns,
            requests=self.requests,
            tokens=self._tokens,
            following=self._following,
        )

    def told(self, version: str, limit: str) -> AgentRun:
        """Return the run as its exchanges show it.

        Args:
            version: Version of the program.
            limit: The limit that ended the run; "" for none.
        """
        offered = self.offered if self.task.skill else None
        return AgentRun(
            version=version,
            turns=self.turns,
            requests=self.requests,
            offered=offered,
            called=self.called,
            taken=self.taken if self.task.chooses else "",
            loaded=self.loaded if self.task.skill and not self.task.chooses else None,
            read=tuple(sorted(self.read)),
            calls=recorded_calls(self.calls),
            limit=limit,
            broken=why_broken(self.task, offered=offered, denied=self.denied and not self.loaded),
        )

    def _see_results(self, calls: Sequence[ToolCall], body: Mapping[str, Any]) -> None:
        """Note the results of the calls of the skill."""
        own = {call.id: call for call in calls if self._is_own(call)}
        self.called = self.called or bool(own)
        for call_id, result in _results(body, own) if own else ():
            self.loaded = self.loaded or is_partly_loaded(self.task, result)
            self.denied = self.denied or self.cli.denies(own[call_id], result)

    def _is_own(self, call: ToolCall) -> bool:
        asked = self.cli.skill_of(call)
        return asked is not None and self.task.name_of(asked) == self.task.skill_name


def _is_offered(task: AgentTask, texts: Sequence[str]) -> bool:
    """Return whether the catalogue in a request names the skill.

    Agents shorten descriptions, so the name next to its beginning, or to its file, is enough.
    """
    text = next((file.text for file in task.skill if file.name == SKILL_FILE), "")
    described = read_skill_text(text, folder=task.skill_name).description
    start = " ".join(described.split())[:_TELLING_CHARS]
    name = task.skill_name
    return any(
        name in text and (f"{name}/{SKILL_FILE}" in text or start in " ".join(text.split()))
        for text in texts
    )


def _results(value: object, calls: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield the results of calls, each with the id of its call."""
    if isinstance(value, Mapping):
        call_id = value.get("tool_use_id") or value.get("tool_call_id") or value.get("call_id")
        result = value.get("output") or value.get("content")
        if call_id in calls and "arguments" not in value:
            yield str(call_id), "\n".join(_texts(result))
        else:
            for part in value.values():
                yield from _results(part, calls)
    elif isinstance(value, list):
        for part in value:
            yield from _results(part, calls)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
