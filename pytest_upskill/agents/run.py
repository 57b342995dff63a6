"""One run of an agent, whichever it is: a new workspace, the agent's work in it, and the record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager

from pytest_upskill.agents.tally import RunTally
from pytest_upskill.agents.workspace import AgentWorkspace
from pytest_upskill.answers.budget import BudgetError
from pytest_upskill.models import Completion, ProviderError
from pytest_upskill.sandbox.run import Sandbox, SandboxError
from pytest_upskill.sandbox.workspace import Workspace, workspace


class NotStartedError(ProviderError):
    """An agent that cannot run on this machine now, but perhaps later."""


async def run_agent(
    tally: RunTally,
    work: Callable[[AgentWorkspace], Awaitable[str]],
    *,
    name: str,
    version: str,
    sandbox: Sandbox,
    skills_folder: str,
) -> Completion:
    """Run an agent in a new workspace, and return its last reply with what it did.

    Args:
        tally: What the agent gets, and its exchanges so far.
        work: Has the agent work until the run ends; returns the limit that ended it, "" for none.
        name: Name of the agent in errors.
        version: Version of the agent.
        sandbox: Runs the setup, git, and the tools of the built-in agent.
        skills_folder: The folder, below the home folder, where skills are installed.

    Raises:
        BudgetError, ProviderError: The run has no result; ``paid`` is what it has cost so far.
    """
    async with _temporary_folder() as home:
        try:
            place = await asyncio.to_thread(
                AgentWorkspace, tally.task, sandbox, home, skills_folder
            )
            await asyncio.to_thread(place.set_up)
            run = tally.run(version, await work(place))
            if not tally.task.chooses:
                run = await asyncio.to_thread(place.record, run, tally.redact)
        except (OSError, SandboxError) as error:
            reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
            reason = reason or type(error).__name__
            stopped = NotStartedError(f"{name}: cannot run the agent: {reason}", billable=False)
            stopped.paid = tally.paid()
            raise stopped from None
        except (BudgetError, ProviderError) as error:
            error.paid = tally.paid()
            raise
    return tally.completion(run)


@asynccontextmanager
async def _temporary_folder() -> AsyncIterator[Workspace]:
    """Yield a new workspace, and remove it in a thread: an agent's many files may take seconds."""
    folders = ExitStack()
    home = folders.enter_context(workspace())
    try:
        yield home
    finally:
        await asyncio.to_thread(folders.close)
