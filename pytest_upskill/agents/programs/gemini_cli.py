"""Gemini CLI: its settings, flags and variables, as of version 0.61.0."""

from __future__ import annotations

import json

from pytest_upskill.agents.programs.cli import Cli, Launch
from pytest_upskill.models import Request


class GeminiCli(Cli):
    """The adapter of Gemini CLI."""

    name = "gemini-cli"
    tested_version = "0.61.0"
    skill_tool = ("activate_skill", "name")
    shell = ("run_shell_command", "command")
    command = "gemini"
    package = "@google/gemini-cli"

    def launch(self, request: Request, base_url: str) -> Launch:
        """See `Cli.launch`."""
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            # Both would ask the host to read the web.
            "tools": {"exclude": ["google_web_search", "web_fetch"]},
        }
        return Launch(
            arguments=(
                *("--model", request.model.name, "--yolo", "--skip-trust"),
                *("--output-format", "stream-json"),
            ),
            environment={
                "GEMINI_API_KEY": "the-key-is-outside-the-sandbox",
                "GOOGLE_GEMINI_BASE_URL": base_url,
            },
            home={".gemini/settings.json": json.dumps(settings)},
        )
