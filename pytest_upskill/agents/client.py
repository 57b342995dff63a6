"""A client whose completion is the run of an agent's program in the sandbox."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_upskill.agents.box import BASE_URL, command, furnish, init_process
from pytest_upskill.agents.cli import Cli, Installed, Launch
from pytest_upskill.agents.left_files import TooMuchLeft, read_left_files
from pytest_upskill.agents.proxy import Proxy
from pytest_upskill.agents.self_test import SKILL, Script, self_test_problem, self_test_request
from pytest_upskill.agents.story import why_broken
from pytest_upskill.agents.upstream import Upstream
from pytest_upskill.completion import AgentRun, Completion, ProviderError, Request
from pytest_upskill.sandbox.workspace import Usage, workspace
from pytest_upskill.spending.run_budget import RunBudget, Settle

RUN_S = 300.0
"""Seconds that a run may take, without the time spent waiting for the host."""

_FOLDER_BYTES = 1 << 30
_FOLDER_FILES = 100_000
_LOOK_S = 0.5
_KILL_S = 10.0
_MOST_OUTPUT = 4096


class CliClient:
    """A client that runs an agent's program for each request.

    Args:
        cli: The adapter of the program.
        installed: The program.
        upstream: Who replies to its requests.
        budget: What runs may cost.
        slots: Limits the programs that run at once.
        run_s: Seconds that a run may take, without the time spent waiting for the host.
    """

    def __init__(
        self,
        cli: Cli,
        installed: Installed,
        upstream: Upstream,
        *,
        budget: RunBudget,
        slots: asyncio.Semaphore,
        run_s: float = RUN_S,
    ) -> None:
        self._cli = cli
        self._installed = installed
        self._upstream = upstream
        self._budget = budget
        self._slots = slots
        self._run_s = run_s
        self._tested: asyncio.Task[None] | None = None

    async def complete(self, request: Request) -> Completion:
        """Run the agent, and return its last message with what it did.

        Raises:
            BudgetError: The run could exceed the budget.
            ProviderError: The host did not answer, or the program does not work.
        """
        if self._tested is None:
            self._tested = asyncio.ensure_future(self._test(request))
        await asyncio.shield(self._tested)
        async with self._slots:
            reservation = await self._budget.reserve(request)
            try:
                proxy = Proxy(request, self._cli.wire, self._upstream, reservation.request)
                return await self._run(request, proxy)
            finally:
                await asyncio.shield(reservation.release())

    async def aclose(self) -> None:
        """Close the connections to the host."""
        await self._upstream.aclose()

    async def _test(self, request: Request) -> None:
        """Run the self-test of the program, against a script instead of the host.

        Raises:
            ProviderError: It does not work.
        """
        cli = self._cli
        asked = self_test_request(request)
        proxy = Proxy(asked, cli.wire, Script(cli.wire, cli.rehearsal(SKILL)), _free)
        try:
            problem = self_test_problem(await self._run(asked, proxy))
        except ProviderError as error:
            problem = str(error)
        if problem:
            raise ProviderError(
                f"{cli.name} {self._installed.version} fails its self-test: {problem}: "
                "install another version",
                fatal=True,
                billable=False,
            )

    async def _run(self, request: Request, proxy: Proxy) -> Completion:
        started = time.perf_counter()
        launch = self._cli.launch(request, BASE_URL)
        with workspace() as home:
            program = _Program(home.root, proxy, self._run_s)
            try:
                socket = furnish(home.root, self._cli, launch, request)
                await proxy.start(socket)
                await program.run(self._installed, launch)
                if not program.limit:
                    await proxy.finish()
            except OSError as error:
                said = error.strerror or str(error)
                raise ProviderError(f"{self._cli.name}: cannot start: {said}") from None
            finally:
                await proxy.aclose()
            if proxy.error is not None:
                if isinstance(proxy.error, ProviderError) and proxy.tally.last is not None:
                    proxy.error.paid = _completion(None, proxy, time.perf_counter() - started)
                raise proxy.error
            limit = proxy.limit or program.limit
            try:
                left = await asyncio.to_thread(read_left_files, home.root / "work")
            except TooMuchLeft as error:
                left, limit = {}, limit or str(error)
        if proxy.tally.requests == 0 and not limit:
            raise ProviderError(f"{self._cli.name}: sent no request: {program.said}", fatal=True)
        run = self._told(request, proxy, limit)
        before = {file.name: file for file in request.task.workspace} if request.task else {}
        if not limit:
            run = replace(
                run,
                changed=tuple(file for name, file in left.items() if before.get(name) != file),
                deleted=tuple(name for name in before if name not in left),
            )
        return _completion(run, proxy, time.perf_counter() - started)

    def _told(self, request: Request, proxy: Proxy, limit: str) -> AgentRun:
        """Return what the exchanges tell of a run."""
        tally, task = proxy.tally, request.task
        assert task is not None
        called = bool(task.skill) and tally.called_before_last(
            lambda call: self._cli.calls_skill(call, task.skill_name)
        )
        return AgentRun(
            version=self._installed.version,
            turns=tally.turns,
            requests=tally.requests,
            offered=tally.offered if task.skill else None,
            called=called,
            loaded=tally.loaded if task.skill else None,
            read=tuple(sorted(tally.read)),
            calls=tuple(tally.calls),
            limit=limit,
            broken=why_broken(
                task,
                offered=tally.offered if task.skill else None,
                called=called,
                loaded=(tally.loaded or None) if limit else tally.loaded,
            ),
        )


async def _free(size: int) -> Settle:
    """Reserve nothing: the self-test costs nothing."""
    del size

    async def settle(completion: Completion | None, billable: bool) -> float | None:
        del completion, billable
        return 0.0

    return settle


class _Program:
    """The process of one run, which never outlives it.

    Args:
        root: The folder that holds all that the program can write.
        proxy: Where its requests arrive.
        seconds: How long it may run, without the time spent waiting for the host.

    Attributes:
        limit: The limit that ended it; "" for none.
        said: The end of its output.
    """

    def __init__(self, root: Path, proxy: Proxy, seconds: float) -> None:
        self.limit = ""
        self.said = ""
        self._root = root
        self._proxy = proxy
        self._seconds = seconds

    async def run(self, installed: Installed, launch: Launch) -> None:
        """Run the program until it ends, reaches a limit, or is cancelled.

        Raises:
            OSError: It cannot be started.
        """
        readable, written = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *command(self._root, installed, launch, written),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                # Of bubblewrap itself, whose environment the agent can read in /proc/1.
                env={"PATH": os.defpath},
                pass_fds=(written,),
            )
        except BaseException:
            os.close(readable)
            raise
        finally:
            os.close(written)
        ends = [
            asyncio.ensure_future(process.wait()),
            asyncio.ensure_future(self._proxy.ended.wait()),
            asyncio.ensure_future(self._watch()),
        ]
        output = asyncio.ensure_future(self._drain(process))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            info = os.read(readable, 1 << 12) if process.returncode is None else b""
            os.close(readable)
            _kill(process, init_process(info))
            for task in ends[1:]:
                task.cancel()
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(ends[0]), _KILL_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(output, 1)
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  else it warns

    async def _watch(self) -> None:
        """Return when the program has reached a limit of time or disk."""
        started, usage = time.monotonic(), Usage(self._root)
        while True:
            await asyncio.sleep(_LOOK_S)
            if time.monotonic() - started - self._proxy.waited_s > self._seconds:
                self.limit = f"it took more than {self._seconds:g} s"
                return
            if await asyncio.to_thread(usage.is_beyond, _FOLDER_BYTES, _FOLDER_FILES):
                self.limit = (
                    f"it wrote more than {_FOLDER_BYTES >> 30} GiB or {_FOLDER_FILES:,} files"
                )
                return

    async def _drain(self, process: asyncio.subprocess.Process) -> None:
        """Read all output, and keep its end for messages."""
        assert process.stdout is not None
        kept = b""
        while chunk := await process.stdout.read(1 << 16):
            kept = (kept + chunk)[-_MOST_OUTPUT:]
        lines = kept.decode("utf-8", "replace").split("\n")
        self.said = next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "")


def _kill(process: asyncio.subprocess.Process, init: int | None) -> None:
    """Kill the sandbox by its init, so that bubblewrap ends after all processes in it have."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.kill(init if init is not None else process.pid, signal.SIGKILL)


def _completion(run: AgentRun | None, proxy: Proxy, seconds: float) -> Completion:
    tally, last = proxy.tally, proxy.tally.last
    whole = last is not None and not last.tool_calls
    return Completion(
        text=last.text if last is not None and whole else "",
        input_tokens=None if tally.uncounted else tally.input_tokens,
        output_tokens=None if tally.uncounted else tally.output_tokens,
        cache_read_tokens=tally.cache_read_tokens,
        cache_write_tokens=tally.cache_write_tokens,
        stop_reason=last.stop_reason if last is not None and whole else "end",
        served_model=tally.served_model,
        latency_s=seconds,
        cost_usd=tally.cost_usd,
        agent_run=run,
    )
