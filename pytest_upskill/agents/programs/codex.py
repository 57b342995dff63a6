"""Codex: its files, flags and tools, as of version 0.169.0."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_upskill.agents.programs.cli import (
    Installed,
    Launch,
    NoAgentError,
    is_unreadable,
    skill_read,
)
from pytest_upskill.agents.programs.version import version_of
from pytest_upskill.completion import Request, ToolCall
from pytest_upskill.wire.stream import AgentFormat

_MISSING = "codex needs the program 'codex' on PATH: npm install -g @openai/codex"
_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")
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


class Codex:
    """The adapter of Codex."""

    name = "codex"
    tested = "0.169.0"
    wire: AgentFormat = "responses"
    skills = ".agents/skills"

    def find(self) -> Installed:
        """See `Cli.find`."""
        found = shutil.which("codex")
        if found is None:
            raise NoAgentError(_MISSING)
        program, folder = _native(Path(os.path.realpath(found)))
        version = _VERSION.search(version_of(program))
        if version is None:
            raise NoAgentError(f"{_MISSING}; {found} does not print its version")
        return Installed(program=program, folder=folder, version=version[0])

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

    def skill_of(self, call: ToolCall) -> str | None:
        """See `Cli.skill_of`: Codex reads the file of a skill with a command."""
        return skill_read(call, self.skills)

    def denies(self, call: ToolCall, result: str) -> bool:
        """See `Cli.denies`: a command may look at a part of the file, or at its size."""
        del call
        return is_unreadable(result)

    def rehearsal(self, skill: str) -> list[Mapping[str, Any]]:
        """See `Cli.rehearsal`."""
        read = {"cmd": f"cat ~/{self.skills}/{skill}/SKILL.md"}
        return [
            {"name": "exec_command", "input": read},
            {"name": "exec_command", "input": {"cmd": "printf done > done.txt"}},
        ]


def _native(program: Path) -> tuple[Path, Path]:
    """Return the executable behind the npm package's wrapper, and what it needs to read."""
    package = program.parent.parent
    machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "")
    name = f"codex-linux-{machine}"
    for folder in (package.parent / name, package / "node_modules" / "@openai" / name):
        for native in sorted((folder / "vendor").glob("*/bin/codex")):
            return native.resolve(), native.resolve().parent.parent
    return program, program
