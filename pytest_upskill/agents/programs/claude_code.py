"""Claude Code: its files, flags and tools, as of version 2.1.330."""

from __future__ import annotations

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

_MISSING = (
    "claude-code needs the program 'claude' on PATH: npm install -g @anthropic-ai/claude-code"
)
_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")
_SKILL = "Skill"
_NO_KEY = "sk-ant-the-key-is-outside-the-sandbox"


class ClaudeCode:
    """The adapter of Claude Code."""

    name = "claude-code"
    tested = "2.1.330"
    wire: AgentFormat = "messages"
    skills = ".claude/skills"

    def find(self) -> Installed:
        """See `Cli.find`."""
        found = shutil.which("claude")
        if found is None:
            raise NoAgentError(_MISSING)
        program = _native(Path(os.path.realpath(found)))
        version = _VERSION.search(version_of(program))
        if version is None:
            raise NoAgentError(f"{_MISSING}; {found} does not print its version")
        return Installed(program=program, folder=program, version=version[0])

    def launch(self, request: Request, base_url: str) -> Launch:
        """See `Cli.launch`."""
        return Launch(
            arguments=(
                *("--print", "--output-format", "stream-json", "--verbose"),
                *("--model", request.model.name, "--permission-mode", "bypassPermissions"),
                *("--no-session-persistence", "--setting-sources", "user", "--strict-mcp-config"),
                *("--disallowed-tools", "WebSearch,WebFetch"),
            ),
            environment={
                "ANTHROPIC_BASE_URL": base_url,
                "ANTHROPIC_API_KEY": _NO_KEY,
                "ANTHROPIC_SMALL_FAST_MODEL": request.model.name,
                "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(request.max_tokens),
                "CLAUDE_CODE_MAX_RETRIES": "0",
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_ERROR_REPORTING": "1",
                "DISABLE_TELEMETRY": "1",
                "IS_SANDBOX": "1",
            },
        )

    def skill_of(self, call: ToolCall) -> str | None:
        """See `Cli.skill_of`: the model calls a tool, or reads the file by another."""
        if call.name != _SKILL:
            return skill_read(call, self.skills)
        # A name may have a prefix, as those of plugins do, or be written as a command.
        name = str(call.arguments.get("skill") or "").rpartition(":")[2]
        return name.strip().removeprefix("/") or None

    def denies(self, call: ToolCall, result: str) -> bool:
        """See `Cli.denies`: the tool failed, or instructions followed its result."""
        return call.name == _SKILL or is_unreadable(result)

    def rehearsal(self, skill: str) -> list[Mapping[str, Any]]:
        """See `Cli.rehearsal`."""
        write = {"command": "printf done > done.txt", "description": "write"}
        return [
            {"name": _SKILL, "input": {"skill": skill}},
            {"name": "Bash", "input": write},
        ]


def _native(program: Path) -> Path:
    """Return the executable behind the npm package's wrapper."""
    package = program.parent.parent
    machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "")
    name = f"claude-code-linux-{machine}"
    for folder in (package.parent / name, package / "node_modules" / "@anthropic-ai" / name):
        if (folder / "claude").is_file():
            return (folder / "claude").resolve()
    return program
