"""opencode: its files and flags, as of version 1.18.33."""

from __future__ import annotations

import json

from pytest_upskill.agents.programs.cli import Cli, Launch
from pytest_upskill.models import Request


class OpenCode(Cli):
    """The adapter of opencode, whose tool for skills needs ripgrep."""

    name = "opencode"
    tested_version = "1.18.33"
    skill_tool = ("skill", "name")
    command = "opencode"
    package = "opencode-ai"

    def launch(self, request: Request, base_url: str) -> Launch:
        """See `Cli.launch`."""
        name = request.model.name
        vendor = "anthropic" if request.model.agent_format == "messages" else "openai"
        limits = {"context": 200_000, "output": request.max_tokens}
        provider = {
            "npm": f"@ai-sdk/{vendor}",
            "options": {"baseURL": f"{base_url}/v1", "apiKey": "the-key-is-outside-the-sandbox"},
            "models": {name: {"name": name, "tool_call": True, "limit": limits}},
        }
        configuration = {
            "model": f"upskill/{name}",
            "small_model": f"upskill/{name}",
            "provider": {"upskill": provider},
            "permission": "allow",
            "share": "disabled",
            "autoupdate": False,
            "formatter": False,
            "lsp": False,
        }
        switches = ("MODELS_FETCH", "LSP_DOWNLOAD", "AUTOUPDATE", "DEFAULT_PLUGINS")
        return Launch(
            arguments=("run", "--format", "json"),
            environment={f"OPENCODE_DISABLE_{switch}": "1" for switch in switches},
            home={".config/opencode/opencode.json": json.dumps(configuration)},
        )
