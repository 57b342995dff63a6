"""A client whose completion is the run of an agent's program in the sandbox.

A run prepares a folder, starts the proxy and the program, waits for the first reason to end, stops
both, and collects the record: see `CliClient._run` and `CliClient._run_program`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial

from pytest_upskill.agents.program_sandbox import BASE_URL, ProgramSandbox
from pytest_upskill.agents.programs import PROGRAMS, Cli, Installed
from pytest_upskill.agents.proxy import Proxy
from pytest_upskill.agents.self_test import SKILL, play_script, self_test_problem, self_test_request
from pytest_upskill.agents.upstream import Upstream
from pytest_upskill.agents.workspace import AgentWorkspace, NotStartedError, run_agent
from pytest_upskill.answers.budget import Budget, Reservation, Settle
from pytest_upskill.answers.resources import Resources
from pytest_upskill.answers.retry import Pace, Retries
from pytest_upskill.models import Completion, Model, ProviderError, Request, RunLimits
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.sandbox.run import Sandbox


def make_program_client(
    model: Model, endpoint: Endpoint, resources: Resources, slots: asyncio.Semaphore
) -> CliClient:
    """Make the client that runs the program of a model's agent.

    Args:
        model: A model with an agent.
        endpoint: The model's host and key.
        resources: What all requests of the session share.
        slots: Limits the programs that run at once.

    Raises:
        ProviderError: The program is not installed.
    """
    cli, wire = PROGRAMS[model.agent], model.agent_format
    assert wire is not None
    # Without a timeout: that of a stream, which restarts with each part, is the upstream's.
    pace, activity = Pace(resources.concurrency), resources.activity
    retries = Retries(pace=pace, host=endpoint.host, activity=activity)
    return CliClient(
        cli=cli,
        installed=cli.find(),
        upstream=Upstream(endpoint, wire, timeout=resources.timeout, retries=retries),
        budget=resources.budget,
        slots=slots,
        sandbox=resources.agent_sandbox(),
    )


@dataclass(slots=True, kw_only=True)
class CliClient:
    """A client that runs an agent's program for each request."""

    cli: Cli
    """The adapter of the program."""
    installed: Installed
    upstream: Upstream
    """Replies to its requests."""
    budget: Budget
    """The limit of the cost of all runs."""
    slots: asyncio.Semaphore
    """Limits the programs that run at once."""
    sandbox: Sandbox
    """The sandbox that works on this machine, with bubblewrap."""
    limits: RunLimits = field(default_factory=RunLimits)
    """Limits of each run."""
    _testing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _problem: str | None = field(default=None, init=False)
    """Why the program fails its self-test, "" if it passes; None before the test."""

    async def complete(self, request: Request) -> Completion:
        """Run the agent, and return its last message with what it did.

        Raises:
            BudgetError: The run could exceed the budget.
            ProviderError: The host did not answer, or the program does not work.
        """
        await self._pass_self_test(request)
        async with self.slots:
            reserved = await self.budget.reserve(request)
            reserve = partial(self.budget.reserve_next, reserved)
            try:
                return await self._run(request, self.upstream, reserve)
            finally:
                await asyncio.shield(self.budget.release(reserved))

    async def aclose(self) -> None:
        """Close the connections to the host."""
        await self.upstream.aclose()

    async def _pass_self_test(self, request: Request) -> None:
        """Run the self-test of the program, once for all requests, without its host.

        Raises:
            ProviderError: The program does not work; or it cannot be started now, and the next
                request tests it again.
        """
        async with self._testing:
            if self._problem is None:
                # A version is refused if it fails twice: it may fail once on a busy machine.
                problem = await self._try_self_test(request)
                self._problem = problem and await self._try_self_test(request)
        if self._problem:
            raise ProviderError(
                f"{self.cli.name} {self.installed.version} fails its self-test: {self._problem}: "
                f"install another version, such as {self.cli.tested_version}",
                fatal=True,
                billable=False,
            )

    async def _try_self_test(self, request: Request) -> str:
        """Try the self-test once, and return what does not work, "" if everything does.

        Raises:
            ProviderError: The program cannot be started.
        """
        cli, host, request = self.cli, self.upstream, self_test_request(request)
        reply = play_script(host.wire, cli.self_test_calls(SKILL))
        script = Upstream(
            host.endpoint, host.wire, timeout=host.timeout, retries=host.retries, script=reply
        )
        # It costs nothing, so that any request fits.
        reserve = partial(self.budget.reserve_next, Reservation(request, None))
        try:
            return self_test_problem(await self._run(request, script, reserve))
        except NotStartedError:
            raise
        except ProviderError as error:
            return str(error).removeprefix(f"{cli.name}: ")

    async def _run(
        self, request: Request, upstream: Upstream, reserve: Callable[[int], Awaitable[Settle]]
    ) -> Completion:
        """Run the program once in a new folder, and return its last message with its record.

        Args:
            request: The request of the run.
            upstream: Replies to the requests of the program.
            reserve: Reserves the price of a request by the most tokens that its prompt can have;
                raises BudgetError.

        Raises:
            BudgetError: The next request could have exceeded the budget.
            ProviderError: The host or the program failed.
        """
        started = time.perf_counter()
        proxy = Proxy(request, self.cli, upstream, reserve, self.limits)
        completion = await run_agent(
            proxy.exchanges,
            partial(self._run_program, request, proxy),
            name=self.cli.name,
            version=self.installed.version,
            sandbox=self.sandbox,
            skills_folder=self.cli.skills_folder,
        )
        return replace(completion, latency_s=time.perf_counter() - started)

    async def _run_program(self, request: Request, proxy: Proxy, work: AgentWorkspace) -> str:
        """Run the program until the run ends, and return the limit that ended it, "" for none.

        The run ends with the first of these:

        - The program exits.
        - The proxy ends it: a request would exceed a limit or the budget, the host fails, or the
          model chooses a skill.
        - `ProgramSandbox.run` ends it at a limit of time, processes or files.

        Program and proxy have stopped when this returns or raises, also if it is cancelled.

        Raises:
            BudgetError: The next request could have exceeded the budget.
            OSError: The program cannot be started.
            ProviderError: The host failed, or the program did not work.
        """
        box = ProgramSandbox(
            root=work.shell.home.root,
            installed=self.installed,
            launch=self.cli.launch(request, BASE_URL),
            has_own_user=self.sandbox.own_user,
        )
        async with aclosing(proxy):
            await proxy.start(box.prepare_folders(request))
            said = await box.run(proxy, self.limits.seconds)
            await proxy.finish()
        if proxy.ended.done():
            return proxy.ended.result()
        # The exit status is not used: a program may exit with an error after the answer.
        if proxy.exchanges.requests == 0:
            raise ProviderError(f"{self.cli.name}: sent no request: {said}", billable=False)
        if not proxy.exchanges.has_final_answer:
            raise ProviderError(f"{self.cli.name}: ended before its model had answered: {said}")
        return ""
