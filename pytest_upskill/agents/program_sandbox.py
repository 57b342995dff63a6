"""The sandbox of an agent's program: bubblewrap, with a socket as the only way out.

It shows nothing of the host except the system's folders, read-only, the agent's program and the
Python that runs the relay. Paths, environment and the name of the user are the same on every
machine. The address space is not limited, because JavaScript engines reserve more than there is
memory. The program never outlives its run.
"""

import asyncio
import errno
import os
import re
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pytest_upskill.agents.programs import Installed, Launch
from pytest_upskill.agents.proxy import Proxy
from pytest_upskill.models import Request
from pytest_upskill.project.files import is_inside
from pytest_upskill.sandbox import confinement
from pytest_upskill.sandbox.launcher import descendants
from pytest_upskill.sandbox.limits import Usage, threads_of
from pytest_upskill.sandbox.seccomp import build_denylist
from pytest_upskill.sandbox.shell import HOME, PLACES, SCRATCH, WORK

WRITABLE: Mapping[str, str] = {
    **PLACES,
    SCRATCH: "/tmp",  # noqa: S108  in the sandbox
    "shm": "/dev/shm",  # noqa: S108  in the sandbox
}
"""What the program may write: folders of the run, and where it sees them."""
BASE_URL = "http://127.0.0.1:8787"
_PORT = "8787"
_AGENT, _NODE, _RUN, _PACKAGES = "/opt/agent", "/opt/node", "/run/upskill", "/opt/python"
_USER = 1000
"""The user in a user namespace."""
_ETC: Mapping[str, str] = {
    "passwd": f"agent:x:{{user}}:{{user}}::{PLACES[HOME]}:/bin/sh\n",
    "group": "agent:x:{user}:\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}

_FOLDER_BYTES = 1 << 30
_FOLDER_FILES = 100_000
_MAX_THREADS = 2000
"""Maximum of all processes together; builds in Java or Rust start hundreds."""
_SPARE_THREADS = 100
"""How many more the kernel allows, so that it is seen that there are too many."""
_CHECK_S = 0.5
"""Maximum seconds between two checks of the limits."""
_KILL_S = 10.0
"""Seconds that a killed program may take to end."""
_MAX_OUTPUT_BYTES = 32 << 10
_ERROR = re.compile(r'"message": ?"([^"\n]+)|(\b(?:API )?error[: ][^"\n]+)', re.IGNORECASE)
"""What an event or a line says of an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSandbox:
    """The sandbox of one run."""

    root: Path
    """The new folder of the run."""
    installed: Installed
    """The agent's program."""
    launch: Launch
    """How to start the program."""
    has_own_user: bool
    """Whether the program runs as the user of its folder, and not in a user namespace."""

    def prepare_folders(self, request: Request) -> Path:
        """Write what the program needs besides its workspace; return where its socket is to be.

        Args:
            request: What the agent gets.

        Raises:
            OSError: The files cannot be written.
        """
        user = confinement.own_user_id(self.root) if self.has_own_user else _USER
        files = {
            **{f"etc/{name}": text.format(user=user) for name, text in _ETC.items()},
            **{f"{HOME}/{name}": text for name, text in self.launch.home.items()},
            "run/prompt": request.user,
        }
        (self.root / "shm").mkdir()
        for name, text in files.items():
            path = self.root / name
            # A setup may have made a link of a folder, or a link or a pipe of the file.
            if not is_inside(path.parent, self.root):
                raise OSError(errno.ELOOP, f"a link of its setup leads {name} out of its home")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_bytes(text.encode("utf-8", "replace"))
        return self.root / "run" / "proxy"

    async def run(self, proxy: Proxy, seconds: float) -> str:
        """Run the program until it exits or its run ends, and kill all of its processes.

        Args:
            proxy: The proxy of the run, which ends the run, also if the program reaches a limit
                here.
            seconds: Limit of the program's time, without the time spent waiting for the host.

        Returns:
            What it says of its failure; any text if it did not fail.

        Raises:
            OSError: It cannot be started.
        """
        # A file, whose size is limited like that of all files of the run.
        with (self.root / "output").open("w+b") as output:
            process = await self._start(output)
            exited = asyncio.ensure_future(process.wait())
            try:
                await _wait_for_end(process.pid, exited, self.root, proxy, seconds)
            finally:
                _kill(process)
                await asyncio.wait((exited,), timeout=_KILL_S)
                exited.cancel()
            output.seek(max(0, output.seek(0, os.SEEK_END) - _MAX_OUTPUT_BYTES))
            return error_in(output.read().decode("utf-8", "replace"))

    async def _start(self, output: BinaryIO) -> asyncio.subprocess.Process:
        with confinement.open_filter(build_denylist) as filter_files:
            return await asyncio.create_subprocess_exec(
                *self._bwrap_command(filter_files),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                # The environment of bubblewrap itself, which the agent can read in /proc/1.
                env={"PATH": os.defpath},
                pass_fds=filter_files,
            )

    def _bwrap_command(self, filter_files: Sequence[int]) -> list[str]:
        """Return the command that runs the agent in the sandbox.

        Args:
            filter_files: File descriptors of filters of system calls.
        """
        command = confinement.bubblewrap(filter_files, own_user=self.has_own_user)
        command += ["--clearenv", "--hostname", "upskill"]
        if not self.has_own_user:
            command += ["--uid", str(_USER), "--gid", str(_USER)]
        command += self._mounts()
        for name, value in self._environment().items():
            command += ["--setenv", name, value]
        writable = [self.root / folder for folder in WRITABLE]
        as_own_user = confinement.own_user_command(self.root, writable) if self.has_own_user else []
        relay = [str(confinement.PYTHON), "-I", "-S", f"{_RUN}.py", _PORT]
        relay += [f"{_RUN}/proxy", f"{_RUN}/prompt", str(_MAX_THREADS + _SPARE_THREADS)]
        node = [] if self.installed.node is None else [f"{_NODE}/node"]
        program = ("--", *node, str(self._program), *self.launch.arguments)
        return [*command, "--chdir", PLACES[WORK], "--", *as_own_user, *relay, *program]

    def _mounts(self) -> list[str]:
        root, folder, node = self.root, self.installed.folder, self.installed.node
        pythons = (each for each in confinement.PYTHON_FOLDERS if not each.is_relative_to("/usr"))
        shown = {
            **{f"/etc/{name}": root / "etc" / name for name in _ETC},
            _RUN: root / "run",
            f"{_RUN}.py": Path(__file__).with_name("relay.py"),
            f"{_AGENT}/{folder.name}": folder,
            **({f"{_NODE}/node": node} if node else {}),
            **{str(path): path for path in (*pythons, *confinement.tools())},
            **{f"{_PACKAGES}/{each.name}": each.resolve() for each in (root / "lib").iterdir()},
        }
        writable = {place: root / name for name, place in WRITABLE.items()}
        return [*confinement.mounts(shown, writable, ("--dev", "/dev")), "--remount-ro", "/dev"]

    def _environment(self) -> dict[str, str]:
        path = (self._program.parent, *confinement.search_path(confinement.tools()))
        return {
            "PATH": ":".join(map(str, path)),
            "HOME": PLACES[HOME],
            "USER": "agent",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TZ": "UTC",
            "PYTHONPATH": _PACKAGES,
            "PYTHONDONTWRITEBYTECODE": "1",
            **self.launch.environment,
        }

    @property
    def _program(self) -> Path:
        """The path of the program in the sandbox."""
        return Path(_AGENT, self.installed.program.relative_to(self.installed.folder.parent))


async def _wait_for_end(
    sandbox_pid: int, exited: asyncio.Future[int], root: Path, proxy: Proxy, seconds: float
) -> None:
    """Wait until a program exits or its run ends; end the run at a limit of time or resources."""
    started = time.monotonic()
    usage = Usage(root, sandbox_pid, _FOLDER_BYTES, _FOLDER_FILES)
    while True:
        pause_s = min(_CHECK_S, usage.due_in_s)
        await asyncio.wait(
            (exited, proxy.ended), timeout=pause_s, return_when=asyncio.FIRST_COMPLETED
        )
        if exited.done() or proxy.ended.done():
            return
        if time.monotonic() - started - proxy.waited_s > seconds:
            proxy.end(f"it took more than {seconds:g} s")
        elif await asyncio.to_thread(_threads_below, sandbox_pid) > _MAX_THREADS:
            proxy.end(f"it started more than {_MAX_THREADS:,} processes and threads")
        elif await asyncio.to_thread(usage.is_beyond):
            limit = f"{_FOLDER_BYTES >> 30} GiB or {_FOLDER_FILES:,} files"
            proxy.end(f"it wrote more than {limit}")


def error_in(output: str) -> str:
    """Return the last error in the output of a program, or else its last line that is no event."""
    errors = [match[1] or match[2] for match in _ERROR.finditer(output)]
    lines = [line for line in output.split("\n") if line.strip() and not line.startswith("{")]
    return " ".join((errors or lines or [""])[-1].split())[:200]


def _threads_below(process: int) -> int:
    """Count the threads of all descendants of a process: the kernel does not limit root's."""
    return sum(len(threads_of(each)) for each in descendants(process))


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill all processes in the sandbox, so that bubblewrap exits after them.

    Without any, bubblewrap has only just started: what it starts ends with it.
    """
    if process.returncode is None:
        for each in [*descendants(process.pid)] or [process.pid]:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
