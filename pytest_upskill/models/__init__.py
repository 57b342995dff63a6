"""Models: their names, requests and completions, and the protocol of a client."""

from __future__ import annotations

from pytest_upskill.checks.calls import ToolUse
from pytest_upskill.models.completion import (
    MAX_TOKENS_COUNTED,
    AgentRun,
    AgentTurn,
    Completion,
    Look,
    StopReason,
    ToolCall,
    clean,
    with_totals,
)
from pytest_upskill.models.grammar import ALIASES, parse_model, parse_models
from pytest_upskill.models.model import AGENTS, Model, ModelError, is_language_model, server
from pytest_upskill.models.parameters import Parameters
from pytest_upskill.models.request import (
    MAX_TURNS,
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
    "ALIASES",
    "MAX_TOKENS_COUNTED",
    "MAX_TURNS",
    "AgentRun",
    "AgentTask",
    "AgentTurn",
    "Client",
    "Completion",
    "InstalledSkill",
    "Look",
    "Model",
    "ModelError",
    "Parameters",
    "ProviderError",
    "Request",
    "RunLimits",
    "StopReason",
    "Tool",
    "ToolCall",
    "ToolResult",
    "ToolUse",
    "Turn",
    "clean",
    "is_language_model",
    "parse_model",
    "parse_models",
    "server",
    "with_totals",
]
