"""What an answer's code cannot do while the case's test code runs on it."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from pytest_upskill.checks.code import Run
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.sandbox.limits import Level, Limits
from pytest_upskill.sandbox.run import Sandbox
from tests.compiling import python, run
from tests.sandbox_programs import every_confining_level, every_level, is_gone

pytestmark = pytest.mark.slow


@every_confining_level
@pytest.mark.parametrize(
    "attack",
    [
        "open({secret!r}).read()",
        "open('/etc/passwd').read()",
        "assert 'planted' in open('/proc/self/environ').read()",
        "assert 'planted' in open('/proc/1/environ').read()",
        "open('/proc/{pid}/environ').read()",
        "import glob; assert len(glob.glob('/proc/[0-9]*')) > 9",
        "open({target!r}, 'w')",
        "open('../src/answer.py', 'w')",
        "open('../check/test.py', 'w')",
        "import os\nos.symlink({secret!r}, '../tmp/link')\nopen('../tmp/link').read()",
        "import socket; socket.create_connection(('127.0.0.1', {port}), 2)",
        "import socket\nsocket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))",
        "import socket; socket.socket(socket.AF_UNIX).connect({unix!r})",
        "import os; os.kill({pid}, 0)",
        "import ctypes; assert ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) == 0",
    ],
)
def test_an_answer_cannot_read_write_connect_or_signal_outside(
    level: Level, attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    secret = tmp_path / "credentials"
    secret.write_text("sk-planted")
    path = str(tmp_path / "socket")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(path)
        unix.listen()
        code = attack.format(
            secret=str(secret),
            target=str(tmp_path / "written"),
            port=server.getsockname()[1],
            unix=path,
            pid=os.getpid(),
        )
        result = run(python(f"done = False\n{code}\ndone = True"), "assert done", level)

    assert not result.passed, attack
    assert "sk-planted" not in result.message + result.detail
    assert not (tmp_path / "written").exists()


@every_level
@pytest.mark.parametrize(
    "bomb",
    [
        "while True: pass",
        "x = [0]\nwhile True: x += x",
        "while True: print('x' * 9999)",
        "import os\nwhile True: os.fork()",
        "import time; time.sleep(999)",
        "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    ],
    ids=["endless", "memory", "output", "forks", "sleep", "recursion"],
)
def test_a_bomb_fails_in_bounded_time(
    level: Level, bomb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(wall_s=1, cpu_s=1, memory_bytes=256 << 20, processes=16)
    monkeypatch.setattr("pytest_upskill.checks.compile.python.LIMITS", limits)
    start = time.monotonic()

    result = run(python(bomb), "assert True", level)

    assert not result.passed
    assert time.monotonic() - start < 15


@every_confining_level
def test_nothing_outlives_a_run_that_starts_its_own_session(level: Level) -> None:
    marker = f"91.{time.monotonic_ns() % 10**9}"
    escape = (
        "import os, time\n"
        "try:\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        f"        os.execv('/bin/sleep', ['sleep', '{marker}'])\n"
        "except OSError:\n"
        "    os._exit(1)\n"
    )

    run(python(escape), "assert True", level)

    assert is_gone(marker)


def test_where_nothing_confines_an_answer_it_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    works = Sandbox._works
    monkeypatch.setattr(Sandbox, "_works", lambda self: self.level == "limits" and works(self))
    check = Run(language="python", code="assert True")

    missing = Compilers("auto").missing(check)

    assert missing is not None
    assert missing.startswith("'run' needs a sandbox that hides files and network")
    assert "--upskill-sandbox limits" in missing
    assert Compilers("limits").missing(check) is None
