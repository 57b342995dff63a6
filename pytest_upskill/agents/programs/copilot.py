"""GitHub Copilot's program: its flags and variables, as of version 1.0.102."""

from __future__ import annotations

from pytest_upskill.agents.programs.cli import Cli, Launch
from pytest_upskill.models import Request


class Copilot(Cli):
    """The adapter of Copilot, with a model of one's own."""

    name = "copilot"
    tested_version = "1.0.102"
    skill_tool = ("skill", "skill")
    command = "copilot"
    package = "@github/copilot"

    def launch(self, request: Request, base_url: str) -> Launch:
        """See `Cli.launch`."""
        is_anthropic = request.model.agent_format == "messages"
        return Launch(
            arguments=("--allow-all", "--output-format", "json", "--no-color"),
            environment={
                "COPILOT_PROVIDER_TYPE": "anthropic" if is_anthropic else "openai",
                "COPILOT_PROVIDER_BASE_URL": base_url if is_anthropic else f"{base_url}/v1",
                "COPILOT_PROVIDER_WIRE_API": "responses",
                "COPILOT_PROVIDER_API_KEY": "the-key-is-outside-the-sandbox",
                "COPILOT_MODEL": request.model.name,
                "COPILOT_OFFLINE": "true",
                "COPILOT_AUTO_UPDATE": "false",
            },
        )
