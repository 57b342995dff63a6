"""The process of an agent's program in its sandbox, which never outlives its run."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from pytest_upskill.agents.box.bubblewrap import command, init_process
from pytest_upskill.agents.programs.cli import Installed, Launch
from pytest_upskill.agents.proxy.proxy import Proxy
from pytest_upskill.agents.record.run_end import LimitReached
from pytest_upskill.sandbox.confinement import open_filter
from pytest_upskill.sandbox.launcher import descendants
from pytest_upskill.sandbox.seccomp import build_denylist
from pytest_upskill.sandbox.workspace import Usage

_FOLDER_BYTES = 1 << 30
_FOLDER_FILES = 100_000
_MOST_THREADS = 2000
"""Of all processes together; builds in Java or Rust start hundreds."""
_LOOK_S = 0.5
_KILL_S = 10.0
_MOST_OUTPUT = 4096
_MOST_SAID = 200
"""Characters of it in a message."""


async def run_boxed(
    root: Path, installed: Installed, launch: Launch, proxy: Proxy, seconds: float
) -> str:
    """Run a program until it ends by itself or its run has ended, and kill what is left of it.

    Args:
        root: The folder that holds all that the program can write.
        installed: The program.
        launch: How it starts.
        proxy: Where its requests arrive; it is told when the program reaches a limit.
        seconds: How long the program may run, without the time spent waiting for the host.

    Returns:
        The last line of its output.

    Raises:
        OSError: It cannot be started.
    """
    readable, written = os.pipe()
    try:
        process = await _start(root, installed, launch, written)
    except BaseException:
        os.close(readable)
        raise
    finally:
        os.close(written)
    assert process.stdout is not None
    exited = asyncio.ensure_future(process.wait())
    last_line = asyncio.ensure_future(_last_line(process.stdout))
    try:
        await _watch(process.pid, exited, root, proxy, seconds)
    finally:
        info = written_so_far(readable)
        os.close(readable)
        _kill(process, init_process(info))
        _, late = await asyncio.wait((exited, last_line), timeout=_KILL_S)
        for task in late:
            task.cancel()
        process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  else it warns
    return "" if last_line in late else last_line.result()


async def _start(
    root: Path, installed: Installed, launch: Launch, info: int
) -> asyncio.subprocess.Process:
    with open_filter(build_denylist) as filters:
        return await asyncio.create_subprocess_exec(
            *command(root, installed, launch, info, filters),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            # Of bubblewrap itself, whose environment the agent can read in /proc/1.
            env={"PATH": os.defpath},
            pass_fds=(info, *filters),
        )


async def _watch(
    sandbox: int, exited: asyncio.Future[int], root: Path, proxy: Proxy, seconds: float
) -> None:
    """Wait until a program exits or its run ends; end the run at a limit of time or resources."""
    started = time.monotonic()
    usage = Usage(root, _FOLDER_BYTES, _FOLDER_FILES)
    while True:
        pause_s = min(_LOOK_S, usage.due_in_s)
        await asyncio.wait(
            (exited, proxy.ended), timeout=pause_s, return_when=asyncio.FIRST_COMPLETED
        )
        if exited.done() or proxy.ended.done():
            return
        if time.monotonic() - started - proxy.waited_s > seconds:
            proxy.end(LimitReached(f"it took more than {seconds:g} s"))
        elif await asyncio.to_thread(_threads_below, sandbox) > _MOST_THREADS:
            proxy.end(LimitReached(f"it started more than {_MOST_THREADS:,} processes and threads"))
        elif await asyncio.to_thread(usage.is_beyond):
            most = f"{_FOLDER_BYTES >> 30} GiB or {_FOLDER_FILES:,} files"
            proxy.end(LimitReached(f"it wrote more than {most}"))


async def _last_line(output: asyncio.StreamReader) -> str:
    """Read all output of a program, and return its last line, cut for a message."""
    kept = b""
    while chunk := await output.read(1 << 16):
        kept = (kept + chunk)[-_MOST_OUTPUT:]
    lines = (" ".join(line.split()) for line in kept.decode("utf-8", "replace").split("\n"))
    return next(filter(None, reversed([*lines])), "")[:_MOST_SAID]


def written_so_far(readable: int) -> bytes:
    """Return what has been written to a pipe, without waiting for bubblewrap to write it."""
    os.set_blocking(readable, False)
    with suppress(BlockingIOError):
        return os.read(readable, 1 << 12)
    return b""


def _threads_below(process: int) -> int:
    """Count the threads of all descendants of a process: root's have no limit in the kernel."""
    threads = 0
    for each in descendants(process):
        with suppress(OSError):
            threads += len(os.listdir(f"/proc/{each}/task"))  # noqa: PTH208  counts, needs no paths
    return threads


def _kill(process: asyncio.subprocess.Process, init: int | None) -> None:
    """Kill the sandbox by its init, so that bubblewrap ends after all processes in it have."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.kill(init if init is not None else process.pid, signal.SIGKILL)
