"""Claude Code: its files, flags and tools, as of version 2.1.330."""

from __future__ import annotations

from pytest_upskill.agents.programs.cli import Cli, Launch
from pytest_upskill.models import Request

_NO_KEY = "sk-ant-the-key-is-outside-the-sandbox"


class ClaudeCode(Cli):
    """The adapter of Claude Code."""

    name = "claude-code"
    tested_version = "2.1.330"
    skills_folder = ".claude/skills"
    skill_tool = ("Skill", "skill")
    shell = ("Bash", "command")
    left_out = ("context_management", "metadata")
    command = "claude"
    package = "@anthropic-ai/claude-code"

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
