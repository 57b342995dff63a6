"""Calls in a thread that does not keep the process alive."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from functools import partial

import pytest

from pytest_upskill.answers.source import in_daemon_thread


def test_the_result_or_error_of_the_call_is_that_of_its_future() -> None:
    def fail() -> int:
        raise LookupError("no such provider")

    assert asyncio.run(in_daemon_thread(lambda: 37)) == 37
    with pytest.raises(LookupError, match="no such provider"):
        asyncio.run(in_daemon_thread(fail))


def test_a_call_that_exits_is_an_error_of_its_future() -> None:
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        asyncio.run(in_daemon_thread(partial(sys.exit, 3)))


def test_a_process_does_not_wait_for_a_call_to_leave() -> None:
    script = textwrap.dedent("""
        import asyncio, time
        from pytest_upskill.answers.source import in_daemon_thread

        async def main():
            await asyncio.wait_for(in_daemon_thread(lambda: time.sleep(600)), 0.1)

        try:
            asyncio.run(main())
        except TimeoutError:
            print("left")
    """)

    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert (result.stdout, result.stderr) == ("left\n", "")
