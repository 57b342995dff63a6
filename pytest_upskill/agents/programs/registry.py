"""The agents that are programs, each with its adapter."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_upskill.agents.programs.claude_code import ClaudeCode
from pytest_upskill.agents.programs.cli import Cli, NoAgentError
from pytest_upskill.agents.programs.codex import Codex
from pytest_upskill.agents.programs.copilot import Copilot
from pytest_upskill.agents.programs.gemini_cli import GeminiCli
from pytest_upskill.agents.programs.opencode import OpenCode
from pytest_upskill.agents.programs.pi import Pi
from pytest_upskill.models import Model

PROGRAMS: Mapping[str, Cli] = MappingProxyType(
    {cli.name: cli for cli in (ClaudeCode(), Codex(), Pi(), OpenCode(), Copilot(), GeminiCli())}
)
"""The adapter of each program, by the prefix of models that use it."""


def program_problem(model: Model) -> str:
    """Return in one line why the program of a model's agent is not usable, "" if it is."""
    try:
        PROGRAMS[model.agent].find()
    except NoAgentError as error:
        return f"--upskill-models: {error}"
    return ""
