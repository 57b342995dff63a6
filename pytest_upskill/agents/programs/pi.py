"""pi: its files and flags, as of version 0.74.2."""

from __future__ import annotations

import json

from pytest_upskill.agents.programs.cli import Cli, Launch
from pytest_upskill.models import Request


class Pi(Cli):
    """The adapter of pi, whose model reads skills by its tool for files."""

    name = "pi"
    tested_version = "0.74.2"
    command = "pi"
    package = "@earendil-works/pi-coding-agent"

    def launch(self, request: Request, base_url: str) -> Launch:
        """See `Cli.launch`."""
        free = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
        model = {
            "id": request.model.name,
            "contextWindow": 200_000,
            "maxTokens": request.max_tokens,
            "cost": free,
            "input": ["text"],
        }
        is_anthropic = request.model.agent_format == "messages"
        provider = {
            "baseUrl": base_url if is_anthropic else f"{base_url}/v1",
            "api": "anthropic-messages" if is_anthropic else "openai-responses",
            "apiKey": "the-key-is-outside-the-sandbox",
            "models": [model],
        }
        return Launch(
            arguments=(
                *("--print", "--mode", "json", "--no-session"),
                *("--provider", "upskill", "--model", request.model.name),
            ),
            environment={"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"},
            home={".pi/agent/models.json": json.dumps({"providers": {"upskill": provider}})},
        )
