"""Run the built-in agent: give each run a workspace, and keep its tools off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pytest_upskill.agents.loop.loop import run_loop
from pytest_upskill.agents.loop.toolbox import Toolbox
from pytest_upskill.completion import Client, Completion, ProviderError, Request
from pytest_upskill.sandbox.machine import cores
from pytest_upskill.sandbox.run import Sandbox, SandboxError
from pytest_upskill.sandbox.workspace import workspace
from pytest_upskill.spending.run_limits import RunLimits

T = TypeVar("T")


class LoopRunner:
    """Runs the built-in agent; used on one event loop.

    Args:
        make_sandbox: Makes the sandbox of all tools; called by the first run.
        max_runs: Maximum number of runs at once; a run that waits has cost nothing.
        limits: Limits of each run; None for the defaults.
    """

    def __init__(
        self, make_sandbox: Callable[[], Sandbox], max_runs: int, limits: RunLimits | None = None
    ) -> None:
        self._make_sandbox = make_sandbox
        self._sandbox: Sandbox | None = None
        self._slots = asyncio.Semaphore(max_runs)
        self._limits = limits or RunLimits()
        self._threads = ThreadPoolExecutor(2 * cores(), thread_name_prefix="upskill-agent")

    async def complete(self, request: Request, client: Client) -> Completion:
        """See `pytest_upskill.answers.resources.AgentRunner`."""
        assert request.task is not None
        try:
            if self._sandbox is None:
                self._sandbox = await self._in_thread(self._make_sandbox)
            async with self._slots:
                with workspace() as home:
                    toolbox = Toolbox(request.task, self._sandbox, home, self._limits.seconds)
                    return await run_loop(request, client, toolbox, self._in_thread, self._limits)
        except (OSError, SandboxError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ProviderError(
                f"{request.model.label}: cannot run the agent: {reason}", billable=False
            ) from None

    def close(self) -> None:
        """Kill the tools that run, and start no more."""
        if self._sandbox is not None:
            self._sandbox.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, function: Callable[..., T], *args: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *args)
