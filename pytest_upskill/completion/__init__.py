"""Request and completion, and the protocol of the client that turns one into the other."""

from __future__ import annotations

from pytest_upskill.completion.client import Client, ProviderError
from pytest_upskill.completion.completion import (
    MAX_RUN_REQUESTS,
    MAX_RUN_TOKENS,
    MAX_TOKENS_COUNTED,
    AgentRun,
    Completion,
    Look,
    StopReason,
    ToolCall,
    ToolUse,
    clean,
    with_totals,
)
from pytest_upskill.completion.request import (
    MAX_TURNS,
    AgentTask,
    InstalledSkill,
    Request,
    Tool,
    ToolResult,
    Turn,
)

__all__ = [
    "MAX_RUN_REQUESTS",
    "MAX_RUN_TOKENS",
    "MAX_TOKENS_COUNTED",
    "MAX_TURNS",
    "AgentRun",
    "AgentTask",
    "Client",
    "Completion",
    "InstalledSkill",
    "Look",
    "ProviderError",
    "Request",
    "StopReason",
    "Tool",
    "ToolCall",
    "ToolResult",
    "ToolUse",
    "Turn",
    "clean",
    "with_totals",
]
