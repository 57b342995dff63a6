"""Codex: its files, flags and tools, as of version 0.169.0."""

from __future__ import annotations

import json

from pytest_upskill.agents.programs.cli import Cli, Launch
from pytest_upskill.models import Request

_CONFIGURATION = """\
model = {model}
model_provider = "upskill"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"

[model_providers.upskill]
name = "upskill"
base_url = {url}
env_key = "UPSKILL_NO_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[skills]
bundled = {{ enabled = false }}

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
exporter = "none"

[history]
persistence = "none"
"""


class Codex(Cli):
    """The adapter of Codex."""

    name = "codex"
    tested_version = "0.169.0"
    shell = ("exec_command", "cmd")
    left_out = ("client_metadata", "tool multi_agent_v1")
    command = "codex"
    package = "@openai/codex"

    def launch(self, request: Request, base_url: str) -> Launch:
        """See `Cli.launch`."""
        configuration = _CONFIGURATION.format(
            model=json.dumps(request.model.name), url=json.dumps(f"{base_url}/v1")
        )
        return Launch(
            arguments=(
                *("exec", "--json", "--skip-git-repo-check", "--ephemeral"),
                *("--dangerously-bypass-approvals-and-sandbox", "-"),
            ),
            environment={"UPSKILL_NO_KEY": "the-key-is-outside-the-sandbox"},
            home={".codex/config.toml": configuration},
        )
