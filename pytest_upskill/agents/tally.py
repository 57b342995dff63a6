"""Totals of the exchanges of one run: tokens, calls, turns, and what was seen of the skill."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_upskill.agents.story import SKILL_FILE, files_read, is_loaded
from pytest_upskill.completion import (
    MAX_RUN_REQUESTS,
    MAX_RUN_TOKENS,
    AgentTask,
    Completion,
    ToolCall,
    ToolUse,
)
from pytest_upskill.formats.skill_md.frontmatter import read_skill_text

_TELLING_CHARS = 24
_MAX_CALLS = 200
_MAX_INPUT = 1000
"""Maximum characters of a call's arguments in a record."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """The sums over the exchanges of one run so far."""

    task: AgentTask
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
    named: list[ToolCall] = field(default_factory=list)
    """The calls in replies that another request followed."""
    served_model: str | None = None
    read: set[str] = field(default_factory=set)
    calls: list[ToolUse] = field(default_factory=list)
    last: Completion | None = None
    """The last reply of the conversation."""
    dropped: dict[str, None] = field(default_factory=dict)
    """What was removed from requests, in order."""

    def asked(self, body: Mapping[str, Any]) -> None:
        """Count a request, and note what of the skill is in it."""
        self.requests += 1
        if not body.get("tools"):
            return  # a side question of the agent's, such as for a title
        self.turns += 1
        if self.last is not None:
            self.named += self.last.tool_calls[: _MAX_CALLS - len(self.named)]
        if not self.task.skill:
            return
        texts = tuple(_texts(body))
        if self.offered is None:
            self.offered = _is_offered(self.task, texts)
        self.loaded = self.loaded or is_loaded(self.task, texts)
        self.read.update(files_read(self.task, texts))

    def answered(self, completion: Completion, *, main: bool, cost_usd: float | None) -> None:
        """Count a reply.

        Args:
            completion: The reply.
            main: Whether it belongs to the conversation, not to a side question.
            cost_usd: Its price; None if that is unknown.
        """
        if completion.tokens is None:
            self.uncounted = True
        else:
            self.input_tokens += completion.input_tokens or 0
            self.output_tokens += completion.output_tokens or 0
        self.cache_read_tokens += completion.cache_read_tokens
        self.cache_write_tokens += completion.cache_write_tokens
        known = self.cost_usd is not None and cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (cost_usd or 0.0) if known else None
        if main:
            self.last = completion
            self.calls += map(_used, completion.tool_calls[: _MAX_CALLS - len(self.calls)])

    def called_before_last(self, is_call: Callable[[ToolCall], bool]) -> bool:
        """Return whether such a call was followed by another request, which has its result."""
        return any(map(is_call, self.named))

    def limit(self) -> str:
        """Return which limit the next request would pass, "" for none."""
        if self.turns >= self.task.max_turns:
            return f"it needs more than {self.task.max_turns} turns"
        if self.requests >= MAX_RUN_REQUESTS:
            return f"it needs more than {MAX_RUN_REQUESTS} requests"
        if self.input_tokens + self.output_tokens >= MAX_RUN_TOKENS:
            return f"it needs more than {MAX_RUN_TOKENS:,} tokens"
        return ""


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


def _used(call: ToolCall) -> ToolUse:
    text = call.malformed or json.dumps(call.arguments, ensure_ascii=False)
    return ToolUse(name=call.name[:_MAX_INPUT], input=text[:_MAX_INPUT])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
