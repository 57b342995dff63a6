"""A client whose completion is the run of an agent's program in the sandbox."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from pytest_upskill.agents.box.bubblewrap import BASE_URL, prepare_folders
from pytest_upskill.agents.box.process import run_boxed
from pytest_upskill.agents.programs.cli import Cli, Installed, NoAgentError
from pytest_upskill.agents.programs.registry import PROGRAMS
from pytest_upskill.agents.proxy.proxy import Proxy
from pytest_upskill.agents.proxy.upstream import HostUpstream, Upstream
from pytest_upskill.agents.record.left_files import with_left_files
from pytest_upskill.agents.record.tally import Tally
from pytest_upskill.agents.self_test import SKILL, Script, self_test_problem, self_test_request
from pytest_upskill.completion import Completion, ProviderError, Request
from pytest_upskill.model import Model
from pytest_upskill.providers.keys import Endpoint, is_custom
from pytest_upskill.sandbox.workspace import workspace
from pytest_upskill.spending.budget import Budget, BudgetError, Settle
from pytest_upskill.spending.caps import Caps
from pytest_upskill.spending.in_flight import InFlight
from pytest_upskill.spending.retry import retries_to

_TESTS = 2
"""Self-tests that must fail before a version is refused: one may fail on a busy machine."""


def open_program(
    model: Model,
    endpoint: Endpoint,
    *,
    timeout: float,
    budget: Budget,
    activity: InFlight,
    requests: int,
    slots: asyncio.Semaphore,
) -> CliClient:
    """Make the client that runs the program of a model's agent.

    Args:
        model: A model with an agent.
        endpoint: Its host and key.
        timeout: Seconds until a reply must begin.
        budget: What runs may cost.
        activity: The record of requests and waits.
        requests: Maximum number of requests in flight at the host.
        slots: The limit of programs at once.

    Raises:
        ProviderError: The program is not installed.
    """
    cli = PROGRAMS[model.agent]
    try:
        installed = cli.find()
    except NoAgentError as error:
        raise ProviderError(str(error), fatal=True, billable=False) from None
    custom = is_custom(model)
    upstream = HostUpstream(
        endpoint,
        cli.wire,
        timeout=timeout,
        retries=retries_to(
            endpoint.host, concurrency=requests, custom=custom, timeout=timeout, activity=activity
        ),
    )
    return CliClient(cli, installed, upstream, budget=budget, slots=slots)


class CliClient:
    """A client that runs an agent's program for each request.

    Args:
        cli: The adapter of the program.
        installed: The program.
        upstream: Who replies to its requests.
        budget: What runs may cost.
        slots: Limits the programs that run at once.
        caps: Limits of each run; None for the usual ones.
    """

    def __init__(
        self,
        cli: Cli,
        installed: Installed,
        upstream: Upstream,
        *,
        budget: Budget,
        slots: asyncio.Semaphore,
        caps: Caps | None = None,
    ) -> None:
        self._cli = cli
        self._installed = installed
        self._upstream = upstream
        self._budget = budget
        self._slots = slots
        self._caps = caps or Caps()
        self._tested: asyncio.Task[None] | None = None

    async def complete(self, request: Request) -> Completion:
        """Run the agent, and return its last message with what it did.

        Raises:
            BudgetError: The run could exceed the budget.
            ProviderError: The host did not answer, or the program does not work.
        """
        await self._pass_test(request)
        async with self._slots:
            reserved = await self._budget.reserve(request)
            reserve = partial(self._budget.reserve_next, reserved)
            try:
                return await self._run(request, self._upstream, reserve)
            finally:
                await asyncio.shield(self._budget.release(reserved))

    async def aclose(self) -> None:
        """Close the connections to the host."""
        await self._upstream.aclose()

    async def _pass_test(self, request: Request) -> None:
        """Wait for the self-test of the program, which is run once.

        Raises:
            ProviderError: It does not work; or it cannot be started, and may be the next time.
        """
        if self._tested is None:
            self._tested = asyncio.ensure_future(self._test(request))
        tested = self._tested
        try:
            await asyncio.shield(tested)
        except ProviderError as error:
            if not error.fatal and self._tested is tested:
                self._tested = None
            raise

    async def _test(self, request: Request) -> None:
        """Run the self-test of the program, against a script instead of the host.

        Raises:
            ProviderError: It does not work, or cannot be started.
        """
        problem = ""
        for _ in range(_TESTS):
            problem = await self._self_test_problem(request)
            if not problem:
                return
        raise ProviderError(
            f"{self._cli.name} {self._installed.version} fails its self-test: {problem}: "
            f"install another version, such as {self._cli.tested}",
            fatal=True,
            billable=False,
        )

    async def _self_test_problem(self, request: Request) -> str:
        """Return what does not work in a self-test, "" if all does.

        Raises:
            ProviderError: It cannot be started.
        """
        cli, request = self._cli, self_test_request(request)
        script = Script(cli.wire, cli.self_test_calls(SKILL))
        try:
            return self_test_problem(await self._run(request, script, _reserve_nothing))
        except _NotStartedError:
            raise
        except ProviderError as error:
            return str(error).removeprefix(f"{cli.name}: ")

    async def _run(
        self, request: Request, upstream: Upstream, reserve: Callable[[int], Awaitable[Settle]]
    ) -> Completion:
        """Run the program once.

        Whatever ends the run first tells the proxy why, except for the program itself when it
        exits: the proxy at a limit of requests, an error, or the model's choice; the watch of the
        process at a limit of time or resources. Then the program is killed.
        """
        started = time.perf_counter()
        launch = self._cli.launch(request, BASE_URL)
        proxy = Proxy(request, self._cli, upstream, reserve, self._caps)
        folders = ExitStack()
        root = folders.enter_context(workspace()).root
        try:
            try:
                await proxy.start(prepare_folders(root, self._cli, launch, request))
                last_line = await run_boxed(
                    root, self._installed, launch, proxy, self._caps.seconds
                )
                await proxy.finish()
            except OSError as error:
                reason = error.strerror or str(error)
                raise _NotStartedError(f"{self._cli.name}: cannot start: {reason}") from None
            finally:
                await proxy.aclose()
            proxy.end(self._reason_at_exit(proxy.tally, last_line))
            run = proxy.tally.run(self._installed.version, self._limit(proxy))
            if not proxy.tally.has_chosen:
                run = await asyncio.to_thread(with_left_files, run, request, root / "work")
                # A host may echo a key in several chunks, so that only a file shows it whole.
                redact = upstream.redact
                kept = (replace(file, text=redact(file.text)) for file in run.changed)
                run = replace(run, changed=tuple(kept))
        finally:
            # An agent may leave so many files that to remove them takes seconds.
            await asyncio.to_thread(folders.close)
        seconds = time.perf_counter() - started
        return replace(proxy.tally.completion(run), latency_s=seconds)

    def _reason_at_exit(self, tally: Tally, last_line: str) -> str | ProviderError:
        """Return why a run has ended whose program exited: "" if its model has answered.

        The exit status is not used: a program may exit with an error after the answer.
        """
        if tally.requests == 0:
            return ProviderError(f"{self._cli.name}: sent no request: {last_line}", billable=False)
        if not tally.has_final_answer:
            return ProviderError(
                f"{self._cli.name}: ended before its model had answered: {last_line}"
            )
        return ""

    def _limit(self, proxy: Proxy) -> str:
        """Return the limit that ended a run, "" for none.

        Raises:
            BudgetError: The next request could have exceeded the budget.
            ProviderError: The host or the program failed.
        """
        reason = proxy.ended.result()
        if isinstance(reason, str):
            return reason
        if isinstance(reason, (BudgetError, ProviderError)) and proxy.tally.replies:
            reason.paid = proxy.tally.completion()
        raise reason


class _NotStartedError(ProviderError):
    """A program that cannot be started now, but perhaps later."""


async def _reserve_nothing(size: int) -> Settle:
    """Reserve nothing: the self-test costs nothing."""
    del size

    async def settle(completion: Completion | None, billable: bool) -> float | None:
        del completion, billable
        return 0.0

    return settle
