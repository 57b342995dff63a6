"""``loop``: a small agent that works with any model that calls tools, which act in the sandbox.

Its model sees the names and descriptions of skills, and loads one with a tool, as in other agents:
https://agentskills.io/client-implementation/adding-skills-support.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from pytest_upskill.agents.exchanges import Exchanges, capped
from pytest_upskill.agents.skill_use import SKILL_FILE, text_of
from pytest_upskill.agents.workspace import SKILLS_FOLDER, AgentWorkspace, run_agent
from pytest_upskill.answers.prices import max_input_tokens
from pytest_upskill.cases.catalogue import available_skills, sort_key
from pytest_upskill.cases.skill_md import read_skill_text
from pytest_upskill.models import AgentTask, Client, Completion, Request, Tool, ToolCall
from pytest_upskill.models.request import RunLimits, ToolResult, Turn
from pytest_upskill.sandbox.limits import Level, Limits
from pytest_upskill.sandbox.run import Outcome, Sandbox, SandboxError
from pytest_upskill.sandbox.shell import SHELL_LIMITS, Shell
from pytest_upskill.trials.trigger_trial import LOAD_SKILL

SKILLS = f"~/{SKILLS_FOLDER}"
"""The folder where skills are installed, as the model sees it."""

_MAX_BYTES = 16_000
"""Maximum length of a result."""

_EXPAND = """
case $1 in "~/"*) path=$HOME/${1#??};; "~") path=$HOME;; *) path=${1:-.};; esac
"""
_READ = _EXPAND + 'exec cat -- "$path"'
_LIST = _EXPAND + 'find "$path" ! -type d | sort | head -n 501'
_WRITE = _EXPAND + 'mkdir -p -- "$(dirname -- "$path")" && cat -- "$2" > "$path"'


TOOLS = (
    LOAD_SKILL,
    Tool.of_texts("read_file", "Read a text file.", path="Path from the workspace."),
    Tool.of_texts(
        "write_file",
        "Write a text file; an existing one is replaced.",
        path="Path from the workspace.",
        content="The whole text of the file.",
    ),
    Tool.of_texts(
        "list_files", "List the files below a folder.", path="Path from the workspace; . for it."
    ),
    Tool.of_texts(
        "bash", "Run a command in the workspace. There is no network.", command="The command."
    ),
)
"""The same tools in every arm: without a skill, the tool ``skill`` finds none."""

_REQUIRED: Mapping[str, list[str]] = {tool.name: list(tool.schema["required"]) for tool in TOOLS}

VERSION = "1"
"""Changes with the prompt or the tools."""

FRAME = (
    "You are an agent. You work with tools in a workspace, which is the current folder. Do what "
    "the user asks, leave the files that you are asked for in the workspace, and then answer."
)


def catalogue(task: AgentTask, run: int) -> str:
    """Return the part of the system prompt that offers the skills, "" without any.

    Args:
        task: What the agent gets.
        run: Index of the run, which decides the order.
    """
    entries = {
        skill.name: {
            "name": skill.name,
            "description": read_skill_text(text, folder=skill.name).description,
            "location": f"{SKILLS}/{skill.folder}/{SKILL_FILE}",
        }
        for skill in task.installed
        if (text := text_of(skill.files))
    }
    listed = [entries[name] for name in sorted(entries, key=lambda name: sort_key(run, name))]
    return available_skills(listed) if listed else ""


def agent_sandbox(level: Level) -> Sandbox:
    """Return the sandbox for the tools of agents.

    Args:
        level: The chosen level; ``auto`` for the strongest that works.

    Raises:
        SandboxError: The level hides no files, or does not work on this machine.
    """
    if level in {"limits", "off"}:
        cure = "use --upskill-sandbox auto"
        raise SandboxError(f"sandbox level {level!r} hides no files from an agent's tools: {cure}")
    with suppress(SandboxError):
        sandbox = Sandbox(level)
        if sandbox.hides_files:
            return sandbox
    raise SandboxError(
        "agents need bubblewrap or Landlock, and neither works here: install bubblewrap and allow "
        "user namespaces, or run in a Linux container; a replay needs neither"
    )


@dataclass(eq=False)
class LoopClient:
    """A client that runs the built-in agent for each request; used on one event loop."""

    client: Client
    """Sends the requests of the agent's model, with retries and within the budget."""
    sandbox: Sandbox
    """The sandbox of all tools."""
    max_runs: int
    """Maximum number of runs at once; a run that waits has cost nothing."""
    redact: Callable[[str], str]
    """Hides the keys in what tools return."""
    limits: RunLimits = field(default_factory=RunLimits)
    """Limits of each run."""

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.max_runs)

    async def complete(self, request: Request) -> Completion:
        """Run the agent on a request with a task, and return its answer with what it did.

        Raises:
            ProviderError: There is no usable reply, or the machine cannot run the agent; ``paid``
                is what the run has cost so far.
            BudgetError: The next request could exceed the budget; ``paid`` likewise.
        """
        assert request.task is not None
        offer = catalogue(request.task, request.run)
        exchanges = Exchanges(
            task=request.task,
            skill_tool=("skill", "name"),
            redact=self.redact,
            limits=self.limits,
            offered=bool(offer),
        )
        first = replace(request, frame=FRAME, skill=offer, tools=TOOLS, task=None)
        work = partial(self._converse, first, exchanges)
        async with self._slots:
            return await run_agent(
                exchanges, work, name=request.model.label, version=VERSION, sandbox=self.sandbox
            )

    async def _converse(self, request: Request, exchanges: Exchanges, work: AgentWorkspace) -> str:
        """Send requests and call tools in turn until the run ends.

        Returns:
            The limit that ended the run; "" if the model has answered or chosen.
        """
        toolbox = Toolbox(exchanges.task, work.shell, self.limits.seconds)
        sent = [("", request.system), ("", request.user)]
        while True:
            await asyncio.to_thread(exchanges.note_request, sent)
            if exchanges.has_chosen:
                return ""
            if limit := exchanges.exceeded_limit():
                return limit
            completion = await self.client.complete(request)
            exchanges.requests += completion.attempts
            exchanges.note_reply(completion, max_input_tokens(request))
            if exchanges.has_final_answer or exchanges.taken:
                return ""
            results = []
            for call in completion.tool_calls:
                if toolbox.left_s <= 0:
                    return f"its tools took more than {self.limits.seconds:g} s"
                results.append(await asyncio.to_thread(toolbox.call, call))
            turn = Turn(assistant_blocks=completion.assistant_blocks, results=tuple(results))
            request = replace(request, turns=(*request.turns, turn))
            sent = [(r.call_id, r.text) for turn in request.turns for r in turn.results]

    async def aclose(self) -> None:
        """Kill the tools that run, and start no more."""
        self.sandbox.close()


class Toolbox:
    """The tools of one run, with its workspace.

    Args:
        task: What the agent gets.
        shell: Runs the tools in the agent's workspace.
        seconds: Time for all calls together.

    Attributes:
        left_s: Seconds left for further calls.
    """

    def __init__(self, task: AgentTask, shell: Shell, seconds: float) -> None:
        self.left_s = seconds
        self._task = task
        self._shell = shell
        self._inputs = count()

    def call(self, call: ToolCall) -> ToolResult:
        """Call a tool, and return its result or what is wrong with the call."""
        if problem := _call_problem(call):
            return ToolResult(call_id=call.id, text=problem, failed=True)
        if call.name == "skill":
            return self._load_skill(call)
        started = time.monotonic()
        limits = replace(SHELL_LIMITS, wall_s=max(0.1, min(SHELL_LIMITS.wall_s, self.left_s)))
        outcome = self._run(call.name, call.arguments, limits)
        self.left_s -= time.monotonic() - started
        text = _describe_result(call.name, outcome, capped(outcome.output, _MAX_BYTES))
        return ToolResult(call_id=call.id, text=text, failed=not outcome.succeeded)

    def _load_skill(self, call: ToolCall) -> ToolResult:
        name = call.arguments["name"]
        body = text_of(self._task.skill)
        if name != self._task.skill_name or not body:
            return ToolResult(call_id=call.id, text=f"There is no skill {name!r}.", failed=True)
        text = f"{body}\n\nFolder of this skill: {SKILLS}/{self._task.installed[0].folder}"
        return ToolResult(call_id=call.id, text=text)

    def _run(self, name: str, arguments: Mapping[str, Any], limits: Limits) -> Outcome:
        """Run the shell command of a tool in the sandbox."""
        if name == "bash":
            return self._shell.bash(str(arguments["command"]), limits)
        path = str(arguments["path"])
        if name != "write_file":
            return self._shell.run(_READ if name == "read_file" else _LIST, path, limits=limits)
        content_file = f"in/{next(self._inputs)}"
        self._shell.home.write(content_file, str(arguments["content"]))
        source = str(self._shell.home.root / content_file)
        return self._shell.run(_WRITE, path, source, limits=limits)


def _call_problem(call: ToolCall) -> str:
    """Return why a call is invalid, in words for the model; "" if it is valid."""
    if call.name not in _REQUIRED:
        return f"There is no tool {call.name!r}: there are {', '.join(_REQUIRED)}."
    if call.malformed:
        return "The arguments are not a JSON object: write the call again."
    for name in _REQUIRED[call.name]:
        value = call.arguments.get(name)
        if not isinstance(value, str):
            return f"{name!r} is missing or is not a text: write the call again."
        if "\0" in value:
            return f"{name!r} has a null character in it: write the call again."
        if name != "content" and len(value.encode("utf-8", "replace")) > _MAX_ARGUMENT:
            return f"{name!r} is longer than {_MAX_ARGUMENT >> 10} KiB: use write_file first."
    return ""


_MAX_ARGUMENT = 100 << 10
"""Maximum bytes of an argument of a command; Linux allows 128 KiB."""


def _describe_result(name: str, outcome: Outcome, text: str) -> str:
    """Return the result of a tool as the model sees it."""
    if name == "bash" or outcome.ended != "exited":
        return f"{text}\n[{outcome.how}]".lstrip()
    if name == "write_file" and outcome.succeeded:
        return "Written."
    return text or ("(empty)" if outcome.succeeded else "It failed.")
