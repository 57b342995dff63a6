"""Processes that run pytest, forked from one that has imported all of it and of this package.

A process that starts anew takes longer to import them than to do what most tests want of it. How
commands start is for ``test_startup.py`` and ``test_packaging.py`` in ``tests/project``.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.process
import os
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from execnet import gateway_base, gateway_io

from tests.pages import CHECKOUT

_CONTEXT = multiprocessing.get_context("forkserver")
_MODULES = {"pytest": "pytest", "pytest-upskill": "pytest_upskill"}
_OF_A_SHELL = set("|&;<>*?$`#~")
"""Characters that only a shell understands."""


@pytest.fixture(scope="session", autouse=True)
def forked_workers() -> Iterator[None]:
    """Fork the workers of every run with ``-n2`` inside pytest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gateway_io, "Popen2IOMaster", _ForkedWorker)
        yield


def run_forked(
    command: str, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str] | None:
    """Run ``pytest`` or ``pytest-upskill``; return None for any other command of a shell.

    The output holds both streams.
    """
    words = shlex.split(command)
    if words[0] not in _MODULES or _OF_A_SHELL & set(command):
        return None
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output, Path(os.devnull).open() as none:
        streams = [Connection(os.dup(file.fileno())) for file in (none, output, output)]
        process = _start(_command, streams, environment, str(folder), words)
        process.join()
        output.seek(0)
        return subprocess.CompletedProcess(words, process.exitcode or 0, output.read())


def start_forked(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], terminal: int
) -> multiprocessing.process.BaseProcess:
    """Start ``pytest`` on a terminal, as the first process of a group of its own."""
    streams = [Connection(os.dup(terminal)) for _ in range(3)]
    return _start(_session, streams, environment, str(folder), words)


class _ForkedWorker(gateway_base.Popen2IO):
    """Stands in for the process that execnet would start."""

    def __init__(self, _command: list[str], execmodel: Any) -> None:
        ours_in, stdout = _CONTEXT.Pipe(duplex=False)
        stdin, ours_out = _CONTEXT.Pipe(duplex=False)
        self._process = _start(_worker, [stdin, stdout, Connection(os.dup(2))], os.environ)
        infile = os.fdopen(os.dup(ours_in.fileno()), "rb")
        outfile = os.fdopen(os.dup(ours_out.fileno()), "wb")
        ours_in.close()
        ours_out.close()
        super().__init__(outfile, infile, execmodel)

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()


def _start(
    target: Any, streams: list[Connection], environment: Mapping[str, str], *more: Any
) -> multiprocessing.process.BaseProcess:
    _CONTEXT.set_forkserver_preload(["tests.preload"])
    # Where the server, which starts with the first process, finds what it is to import.
    with contextlib.chdir(CHECKOUT):
        forkserver.ensure_running()
    process = _CONTEXT.Process(target=target, args=(streams, dict(environment), *more))
    process.start()
    for stream in streams:
        stream.close()
    return process


def _worker(streams: list[Connection], environment: Mapping[str, str]) -> None:
    """Do what ``python -c`` does with the line that execnet gives it."""
    _be(streams, environment)
    exec(gateway_io.popen_bootstrapline, {"__name__": "__main__"})


def _command(
    streams: list[Connection], environment: Mapping[str, str], folder: str, words: Sequence[str]
) -> None:
    """Do what the console script does."""
    _be(streams, environment)
    os.chdir(folder)
    sys.argv[:] = words
    runpy.run_module(_MODULES[words[0]], run_name="__main__")


def _session(*arguments: Any) -> None:
    os.setsid()
    # What is started in the background of a script ignores Ctrl-C, and so would this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _command(*arguments)


def _be(streams: list[Connection], environment: Mapping[str, str]) -> None:
    """Become the process that was asked for: its stdin, stdout, stderr and environment."""
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    # Descriptors that stay open as long as the process is there.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
