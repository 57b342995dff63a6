"""The process of an agent's program in its sandbox, which never outlives its run."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from pytest_upskill.agents.box.bubblewrap import bwrap_command, init_process
from pytest_upskill.agents.programs.cli import Installed, Launch
from pytest_upskill.agents.proxy.proxy import Proxy
from pytest_upskill.agents.record.run_end import LimitReached
from pytest_upskill.sandbox.confinement import open_filter
from pytest_upskill.sandbox.launcher import descendants
from pytest_upskill.sandbox.seccomp import build_denylist
from pytest_upskill.sandbox.workspace import Usage

_FOLDER_BYTES = 1 << 30
_FOLDER_FILES = 100_000
_MAX_THREADS = 2000
"""Maximum of all processes together; builds in Java or Rust start hundreds."""
_CHECK_S = 0.5
"""Maximum seconds between two checks of the limits."""
_KILL_S = 10.0
"""Seconds that a killed program may take to end."""
_MAX_OUTPUT_BYTES = 4096
_MAX_LINE_CHARS = 200
"""Maximum length of a line of output in a message."""


async def run_boxed(
    root: Path, installed: Installed, launch: Launch, proxy: Proxy, seconds: float
) -> str:
    """Run a program until it exits or its run ends, and kill all of its processes.

    Args:
        root: The folder that `prepare_folders` has filled.
        installed: The program.
        launch: How to start it.
        proxy: The proxy of the run, which ends the run, also if the program reaches a limit here.
        seconds: Limit of the program's time, without the time spent waiting for the host.

    Returns:
        The last line of its output.

    Raises:
        OSError: It cannot be started.
    """
    info_reader, info_writer = os.pipe()
    with ExitStack() as descriptors:
        descriptors.callback(os.close, info_reader)
        try:
            process = await _start(root, installed, launch, info_writer)
        finally:
            os.close(info_writer)
        assert process.stdout is not None
        exited = asyncio.ensure_future(process.wait())
        last_line = asyncio.ensure_future(_last_line(process.stdout))
        try:
            await _wait_for_end(process.pid, exited, root, proxy, seconds)
        finally:
            _kill(process, init_process(written_so_far(info_reader)))
            _, unfinished = await asyncio.wait((exited, last_line), timeout=_KILL_S)
            for task in unfinished:
                task.cancel()
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  else it warns
    return "" if last_line in unfinished else last_line.result()


async def _start(
    root: Path, installed: Installed, launch: Launch, info_writer: int
) -> asyncio.subprocess.Process:
    with open_filter(build_denylist) as filter_files:
        return await asyncio.create_subprocess_exec(
            *bwrap_command(root, installed, launch, info_writer, filter_files),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            # The environment of bubblewrap itself, which the agent can read in /proc/1.
            env={"PATH": os.defpath},
            pass_fds=(info_writer, *filter_files),
        )


async def _wait_for_end(
    sandbox_pid: int, exited: asyncio.Future[int], root: Path, proxy: Proxy, seconds: float
) -> None:
    """Wait until a program exits or its run ends; end the run at a limit of time or resources."""
    started = time.monotonic()
    usage = Usage(root, _FOLDER_BYTES, _FOLDER_FILES)
    while True:
        pause_s = min(_CHECK_S, usage.due_in_s)
        await asyncio.wait(
            (exited, proxy.ended), timeout=pause_s, return_when=asyncio.FIRST_COMPLETED
        )
        if exited.done() or proxy.ended.done():
            return
        if time.monotonic() - started - proxy.waited_s > seconds:
            proxy.end(LimitReached(f"it took more than {seconds:g} s"))
        elif await asyncio.to_thread(_threads_below, sandbox_pid) > _MAX_THREADS:
            proxy.end(LimitReached(f"it started more than {_MAX_THREADS:,} processes and threads"))
        elif await asyncio.to_thread(usage.is_beyond):
            limit = f"{_FOLDER_BYTES >> 30} GiB or {_FOLDER_FILES:,} files"
            proxy.end(LimitReached(f"it wrote more than {limit}"))


async def _last_line(output: asyncio.StreamReader) -> str:
    """Read all output of a program, and return its last line that is not empty, for a message."""
    tail = b""
    while chunk := await output.read(1 << 16):
        tail = (tail + chunk)[-_MAX_OUTPUT_BYTES:]
    lines = [" ".join(line.split()) for line in tail.decode("utf-8", "replace").split("\n")]
    return next(filter(None, reversed(lines)), "")[:_MAX_LINE_CHARS]


def written_so_far(readable: int) -> bytes:
    """Return what has been written to a pipe, without waiting for bubblewrap to write it."""
    os.set_blocking(readable, False)
    with suppress(BlockingIOError):
        return os.read(readable, 1 << 12)
    return b""


def _threads_below(process: int) -> int:
    """Count the threads of all descendants of a process: the kernel does not limit root's."""
    threads = 0
    for descendant in descendants(process):
        with suppress(OSError):
            threads += len(os.listdir(f"/proc/{descendant}/task"))  # noqa: PTH208  counts, needs no paths
    return threads


def _kill(process: asyncio.subprocess.Process, init: int | None) -> None:
    """Kill the init of the sandbox, so that bubblewrap exits after all processes in it."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.kill(init if init is not None else process.pid, signal.SIGKILL)
