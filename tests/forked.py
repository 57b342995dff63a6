"""Processes that run pytest, forked from one that has imported all of it and of this package.

A process that starts anew takes longer to import them than to do what most tests want of it. How
commands start is for ``test_startup.py`` and ``test_packaging.py`` in ``tests/shipped``.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

from tests.pages import CHECKOUT

ADDRESS = "PYTEST_FORK_SERVER"
"""Environment variable of the workers of the whole suite, which share a server."""

WORKER = "worker"
_MODULES = {"pytest": "pytest", "pytest-upskill": "pytest_upskill"}
_STREAMS = 3

_COMMAND = """\
#!{python} -IS
import json, os, socket, sys

words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
order = {{"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    socket.send_fds(connection, [json.dumps(order).encode() + b"\\n"], [0, 1, 2])
    _, status = connection.makefile()
sys.exit(int(status) % 256)
"""
"""A command on PATH that has the server run it."""

_PYTHON = """\
#!/bin/sh
case "$1 $2 $3" in
    "-P -m pytest") shift 3; exec {folder}/pytest "$@" ;;
    "-P -m pytest_upskill") shift 3; exec {folder}/pytest-upskill "$@" ;;
esac
exec {python} "$@"
"""
"""Python on PATH, as workflows start both commands: as modules, which the server runs."""


def fork_workers() -> None:
    """Fork the workers of the runs in this process from now on, instead of starting Python."""
    # Here, so that without pytest-xdist pytest can at least say what is wrong with its arguments.
    from execnet import gateway_io

    from tests.forked_worker import ForkedWorker

    gateway_io.Popen2IOMaster = ForkedWorker  # type: ignore[misc, assignment]  # its stand-in


@pytest.fixture(scope="session", autouse=True)
def forked_workers() -> None:
    """Fork the workers of every run with ``-n2`` inside pytest."""
    fork_workers()


def forked_commands() -> Path:
    """Return a folder with ``pytest``, ``pytest-upskill`` and ``python``, for PATH."""
    return Path(server_address()).parent


class Forked:
    """A process that the server forked.

    Args:
        words: ``pytest`` or ``pytest-upskill``, and its arguments.
        folder: Its working directory.
        environment: Its environment variables.
        streams: Descriptors that it gets as stdin, stdout and stderr.
        leads: Whether it is the first of a session and a group of its own, as on a terminal.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        streams: Sequence[int],
        *,
        leads: bool = False,
    ) -> None:
        order = {"words": words, "folder": str(folder), "environment": dict(environment)}
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(server_address())
        text = json.dumps(order | {"leads": leads}).encode() + b"\n"
        socket.send_fds(self._connection, [text], streams)
        self._reports = self._connection.makefile()
        self.pid = int(self._reports.readline())
        self._status: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status as `subprocess` does."""
        if self._status is None:
            self._connection.settimeout(timeout)
            self._status = int(self._reports.readline())
            self._reports.close()
            self._connection.close()
        return self._status

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


@cache
def server_address() -> str:
    """Return the address of the server; start it if there is none."""
    if ADDRESS in os.environ:
        return os.environ[ADDRESS]
    folder = Path(tempfile.mkdtemp(prefix="forks-"))
    address = str(folder / "address")
    for name in _MODULES:
        (folder / name).write_text(_COMMAND.format(python=sys.executable, address=address))
        (folder / name).chmod(0o755)
    (folder / "python").write_text(_PYTHON.format(python=sys.executable, folder=folder))
    (folder / "python").chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        # Its stdin is closed when this process has ended, and so the server ends.
        _keep(
            subprocess.Popen(
                [sys.executable, "-m", "tests.preload", str(listener.fileno())],
                cwd=CHECKOUT,
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
            )
        )
    return address


def _keep(server: subprocess.Popen[bytes]) -> None:
    @atexit.register
    def end() -> None:
        assert server.stdin is not None
        server.stdin.close()
        server.wait()


def serve(descriptor: int) -> None:
    """Fork processes until stdin is closed; what the calling process has imported, they have."""
    # Ctrl-C is for them, and for the process that closes stdin at its end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The processes that watch the others need nobody to wait for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as listener:
        folder = Path(listener.getsockname()).parent
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _watch(connection)
            connection.close()
    shutil.rmtree(folder)


def _watch(connection: socket.socket) -> NoReturn:
    """Fork one process, and report its number and its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, streams, _, _ = socket.recv_fds(connection, 1 << 16, _STREAMS)
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 16)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _run(streams, **json.loads(text))
    for stream in streams:
        os.close(stream)
    with suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _run(
    streams: list[int],
    words: list[str],
    folder: str,
    environment: dict[str, str],
    leads: bool = False,
) -> NoReturn:
    """Become the process that was ordered."""
    status: object = 0
    try:
        if leads:
            os.setsid()
        # What is started in the background of a script ignores Ctrl-C, and so would this.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _become(streams, folder, environment)
        sys.argv[:] = words
        # What multiprocessing spawns would import the server's own module, and serve as well.
        sys.modules["__main__"] = ModuleType("__main__")
        if words == [WORKER]:
            from execnet import gateway_io

            # As python -c does with the line that execnet gives it.
            exec(gateway_io.popen_bootstrapline, {"__name__": "__main__"})
        else:
            runpy.run_module(_MODULES[words[0]], run_name="__main__")
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001  as the interpreter does
        traceback.print_exc()
        status = 1
    if not isinstance(status, int | None):
        sys.stderr.write(f"{status}\n")
        status = 1
    # Not a return into the server, whose memory would be taken apart.
    threading._shutdown()  # type: ignore[attr-defined]  # it has no public name
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status or 0)


def _become(streams: list[int], folder: str, environment: dict[str, str]) -> None:
    os.chdir(folder)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    # Descriptors that stay open as long as the process is there.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
