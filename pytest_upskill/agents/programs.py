"""Programs that are agents, such as Claude Code: how each is found and started.

Each adapter has the files, flags and tools of its program as of ``tested_version``.
"""

import json
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pytest_upskill.agents.workspace import SKILLS_FOLDER
from pytest_upskill.models import Model, ProviderError, Request
from pytest_upskill.sandbox.run import run_trusted

_VERSION = re.compile(r"\d+\.\d+\.\d+(?:\S*\w)?")
_NO_KEY = "sk-ant-the-key-is-outside-the-sandbox"
"""What stands for the key in the sandbox."""


class NoAgentError(ProviderError):
    """An agent that cannot run here; the message says in one line what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, fatal=True, billable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A program that is installed on this machine."""

    program: Path
    """The executable, with all links resolved."""
    folder: Path
    """The folder that the program needs to read; the executable itself if it needs none."""
    version: str
    node: Path | None = None
    """The Node that runs the program; None for an executable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a run."""

    arguments: tuple[str, ...]
    """Arguments of the program; the prompt is its standard input."""
    environment: Mapping[str, str]
    home: Mapping[str, str] = field(default_factory=dict)
    """Files below the home folder: name to text."""


class Cli(ABC):
    """The adapter of one program: how it is found and started, and what its calls mean."""

    name: ClassVar[str]
    """The prefix of models that use the program."""
    tested_version: ClassVar[str]
    """The version that the adapter was written for."""
    skills_folder: ClassVar[str] = SKILLS_FOLDER
    """The folder, below the home folder, where the program looks for skills."""
    skill_tool: ClassVar[tuple[str, str]] = ("", "")
    """Its tool that loads a skill, and the argument with the name; "" if the model reads files."""
    shell: ClassVar[tuple[str, str]] = ("bash", "command")
    """Its tool that runs a command, and the argument with the command."""
    package: ClassVar[str]
    """Its npm package."""

    @property
    def command(self) -> str:
        """The name of the program on PATH."""
        return self.name

    def find(self) -> Installed:
        """Find the program.

        Raises:
            NoAgentError: It is not installed; the message says how to install it.
        """
        cure = f"npm install -g {self.package}"
        missing = f"{self.name} needs the program {self.command!r} on PATH: {cure}"
        command = shutil.which(self.command)
        if not command:
            raise NoAgentError(missing)
        program = Path(os.path.realpath(command))
        with program.open("rb") as file:
            is_script = b"node" in file.readline(100) and program.suffix in {".js", ".mjs", ".cjs"}
        if not is_script:
            if not (version := _version_of(program)):
                raise NoAgentError(f"{missing}; {command} does not print its version")
            return Installed(program=program, folder=program, version=version)
        # A script of Node, with all packages that it may import.
        node = shutil.which("node")
        folder = next((each for each in program.parents if each.name == "node_modules"), None)
        if node is None or folder is None:
            raise NoAgentError(f"{missing}; {program} needs node on PATH, and its npm package")
        package = json.loads((folder / self.package / "package.json").read_text("utf-8"))
        real_node = Path(os.path.realpath(node))
        return Installed(program=program, folder=folder, version=package["version"], node=real_node)

    @abstractmethod
    def launch(self, request: Request, base_url: str) -> Launch:
        """Return how to start a run.

        Args:
            request: The request of the run.
            base_url: The address of the proxy in the sandbox, without a path.
        """

    def self_test_calls(self, skill: str) -> list[Mapping[str, Any]]:
        """Return calls (``name`` and ``input``) that load the skill, then write ``done.txt``.

        The scripted model of the self-test makes them.
        """
        tool, argument = self.skill_tool
        read = self.shell_call(f"cat ~/{self.skills_folder}/{skill}/SKILL.md")
        load = {"name": tool, "input": {argument: skill}} if tool else read
        return [load, self.shell_call("printf done > done.txt")]

    def shell_call(self, command: str) -> Mapping[str, Any]:
        """Return a call that runs a command."""
        tool, argument = self.shell
        # Some programs demand a description, and the others ignore it.
        return {"name": tool, "input": {argument: command, "description": "as asked"}}


@lru_cache  # A session asks more than once, and it takes a quarter of a second.
def _version_of(program: Path) -> str:
    """Return the version that a program prints, "" if it prints none."""
    found = _VERSION.search(run_trusted(program, "--version"))
    return found[0] if found else ""


class ClaudeCode(Cli):
    """The adapter of Claude Code."""

    name = "claude-code"
    tested_version = "2.1.330"
    skills_folder = ".claude/skills"
    skill_tool = ("Skill", "skill")
    shell = ("Bash", "command")
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
                # Also turns off updates, telemetry and reports of errors.
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(request.max_tokens),
                "CLAUDE_CODE_MAX_RETRIES": "0",
                "IS_SANDBOX": "1",
            },
        )


_CODEX_CONFIGURATION = """\
model = {model}
model_provider = "upskill"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"
skills.bundled.enabled = false
analytics.enabled = false
feedback.enabled = false
otel.exporter = "none"
history.persistence = "none"
[model_providers.upskill]
name = "upskill"
base_url = {url}
env_key = "UPSKILL_NO_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


class Codex(Cli):
    """The adapter of Codex."""

    name = "codex"
    tested_version = "0.169.0"
    shell = ("exec_command", "cmd")
    package = "@openai/codex"

    def launch(self, request: Request, base_url: str) -> Launch:
        """See `Cli.launch`."""
        model, url = json.dumps(request.model.name), json.dumps(f"{base_url}/v1")
        configuration = _CODEX_CONFIGURATION.format(model=model, url=url)
        return Launch(
            arguments=(
                *("exec", "--json", "--skip-git-repo-check", "--ephemeral"),
                *("--dangerously-bypass-approvals-and-sandbox", "-"),
            ),
            environment={"UPSKILL_NO_KEY": _NO_KEY},
            home={".codex/config.toml": configuration},
        )


class Pi(Cli):
    """The adapter of pi, whose model reads skills by its tool for files."""

    name = "pi"
    tested_version = "0.74.2"
    package = "@earendil-works/pi-coding-agent"

    def launch(self, request: Request, base_url: str) -> Launch:
        """See `Cli.launch`."""
        model = {
            "id": request.model.name,
            "contextWindow": 200_000,
            "maxTokens": request.max_tokens,
            "cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0),
            "input": ["text"],
        }
        is_anthropic = request.model.agent_format == "messages"
        provider = {
            "baseUrl": base_url if is_anthropic else f"{base_url}/v1",
            "api": "anthropic-messages" if is_anthropic else "openai-responses",
            "apiKey": _NO_KEY,
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


class OpenCode(Cli):
    """The adapter of opencode, whose tool for skills needs ripgrep."""

    name = "opencode"
    tested_version = "1.18.33"
    skill_tool = ("skill", "name")
    package = "opencode-ai"

    def launch(self, request: Request, base_url: str) -> Launch:
        """See `Cli.launch`."""
        name = request.model.name
        vendor = "anthropic" if request.model.agent_format == "messages" else "openai"
        limits = {"context": 200_000, "output": request.max_tokens}
        provider = {
            "npm": f"@ai-sdk/{vendor}",
            "options": {"baseURL": f"{base_url}/v1", "apiKey": _NO_KEY},
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


class Copilot(Cli):
    """The adapter of Copilot, with a model of one's own."""

    name = "copilot"
    tested_version = "1.0.102"
    skill_tool = ("skill", "skill")
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
                "COPILOT_PROVIDER_API_KEY": _NO_KEY,
                "COPILOT_MODEL": request.model.name,
                "COPILOT_OFFLINE": "true",
                "COPILOT_AUTO_UPDATE": "false",
            },
        )


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
                "GEMINI_API_KEY": _NO_KEY,
                "GOOGLE_GEMINI_BASE_URL": base_url,
                "GEMINI_CLI_NO_RELAUNCH": "true",  # it would only get more memory
            },
            home={".gemini/settings.json": json.dumps(settings)},
        )


PROGRAMS: Mapping[str, Cli] = {
    cli.name: cli for cli in (ClaudeCode(), Codex(), Pi(), OpenCode(), Copilot(), GeminiCli())
}
"""The adapter of each program, by the prefix of models that use it."""


def program_problem(model: Model) -> str:
    """Return in one line why the program of a model's agent is not usable, "" if it is."""
    try:
        PROGRAMS[model.agent].find()
    except NoAgentError as error:
        return f"--upskill-models: {error}"
    return ""
