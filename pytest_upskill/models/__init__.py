"""Models: their names, requests and completions, and the protocol of a client."""

from pytest_upskill.models.completion import AgentRun, AgentTurn, Completion, ToolCall
from pytest_upskill.models.model import Model, ModelError
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
    "Tool",
    "ToolCall",
    "ToolResult",
    "Turn",
    "parse_model",
]
