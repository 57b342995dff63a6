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
from pytest_upskill.sandbox.confinement import open_filter
from pytest_upskill.sandbox.launcher import descendants
from pytest_upskill.sandbox.seccomp import build_open_filter
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


class BoxedProcess:
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
            with open_filter(build_open_filter) as filters:
                process = await asyncio.create_subprocess_exec(
                    *command(self._root, installed, launch, written, filters),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                    start_new_session=True,
                    # Of bubblewrap itself, whose environment the agent can read in /proc/1.
                    env={"PATH": os.defpath},
                    pass_fds=(written, *filters),
                )
        except BaseException:
            os.close(readable)
            raise
        finally:
            os.close(written)
        ends = [
            asyncio.ensure_future(process.wait()),
            asyncio.ensure_future(self._proxy.ended.wait()),
            asyncio.ensure_future(self._watch(process.pid)),
        ]
        output = asyncio.ensure_future(self._drain(process))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            info = written_so_far(readable)
            os.close(readable)
            _kill(process, init_process(info))
            for task in ends[1:]:
                task.cancel()
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(ends[0]), _KILL_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(output, 1)
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  else it warns

    async def _watch(self, sandbox: int) -> None:
        """Return when the program has reached a limit of time, processes or disk."""
        started = time.monotonic()
        usage = Usage(self._root, _FOLDER_BYTES, _FOLDER_FILES)
        while True:
            await asyncio.sleep(min(_LOOK_S, usage.due_in_s))
            if time.monotonic() - started - self._proxy.waited_s > self._seconds:
                self.limit = f"it took more than {self._seconds:g} s"
                return
            if await asyncio.to_thread(_threads_below, sandbox) > _MOST_THREADS:
                self.limit = f"it started more than {_MOST_THREADS:,} processes and threads"
                return
            if await asyncio.to_thread(usage.is_beyond):
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
        last = next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "")
        self.said = last[:_MOST_SAID]


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
