"""Models: their names, requests and completions, and the protocol of a client."""

from __future__ import annotations

from pytest_upskill.checks.calls import ToolUse
from pytest_upskill.models.completion import (
    AgentRun,
    AgentTurn,
    Completion,
    StopReason,
    ToolCall,
)
from pytest_upskill.models.model import AGENTS, Model, ModelError
from pytest_upskill.models.names import parse_model
from pytest_upskill.models.request import (
    AgentTask,
    Client,
    InstalledSkill,
    ProviderError,
    Request,
    RunLimits,
    Tool,
    ToolResult,
    Turn,
)

__all__ = [
    "AGENTS",
    "AgentRun",
    "AgentTask",
    "AgentTurn",
    "Client",
    "Completion",
    "InstalledSkill",
    "Model",
    "ModelError",
    "ProviderError",
    "Request",
    "RunLimits",
    "StopReason",
    "Tool",
    "ToolCall",
    "ToolResult",
    "ToolUse",
    "Turn",
    "parse_model",
]
