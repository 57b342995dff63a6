"""Runs that are interrupted or killed go on from their recordings."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_upskill.session.xdist import Handover
from tests.conftest import UNTESTED_PLUGINS, Run, WriteSkill, budget_cases, recordings
from tests.forked import Forked, forked_commands
from tests.loopback import Loopback, Received, Reply, know

pytestmark = pytest.mark.slow

CASES = budget_cases(10)
ANSWERED = 6
FOREVER_S = 600.0
QUIET_S = 1.0
"""A run that has printed nothing for so long waits for an answer."""
OUTPUT = Path("output.txt")
PATIENCE_S = 60.0
"""For what comes at once, on a machine that does other things too."""


@pytest.fixture
def hanging(loopback: Loopback, model: str) -> str:
    """Serve a model that answers a few requests and leaves all others waiting."""

    def answer(received: Received) -> Reply:
        early = any(each is received for each in loopback.requests[:ANSWERED])
        return know(received) if early else Reply(delay=FOREVER_S)

    loopback.answer = answer
    return model


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(params=[("-p", "no:xdist"), ("-n2",)], ids=" ".join)
def half_recorded(
    request: pytest.FixtureRequest,
    pytester: pytest.Pytester,
    write_skill: WriteSkill,
    loopback: Loopback,
    hanging: str,
) -> Iterator[Forked]:
    """Start a run whose first answers are recorded, and which waits for more.

    It leads a process group of its own, as on a terminal; its output is in a file.
    """
    write_skill(*CASES)
    arguments = [*UNTESTED_PLUGINS, *request.param, "--upskill-models", hanging, "skills"]
    with OUTPUT.open("w") as output:
        streams = [output.fileno()] * 3
        process = Forked(["pytest", *arguments], pytester.path, os.environ, streams, leads=True)
    try:
        # The others wait for an answer or for their turn: a server of one's own gets few at a time.
        wait_until(lambda: len(loopback.requests) > ANSWERED)
        wait_until(lambda: len(recordings()) == ANSWERED)
        # pytest cannot report an interruption between two tests, where a traceback has no line.
        wait_until(lambda: time.time() - OUTPUT.stat().st_mtime > QUIET_S)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def group_is_gone(process: Forked) -> bool:
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def the_next_run_goes_on(run_once: Run, loopback: Loopback, hanging: str) -> Callable[[], None]:
    """Check that another run requests only what is missing."""

    def goes_on() -> None:
        loopback.answer = know
        result = run_once("--upskill-models", hanging, "skills")
        assert result.ret == pytest.ExitCode.OK
        # The server's count would include what the killed run sent and the server reads only now.
        missing = 2 * len(CASES) - ANSWERED
        result.stdout.fnmatch_lines([f"requested {missing} answers:*replayed {ANSWERED} answers:*"])

    return goes_on


def test_ctrl_c_ends_the_run_at_once_and_the_next_goes_on_from_there(
    half_recorded: Forked, the_next_run_goes_on: Callable[[], None]
) -> None:
    os.killpg(half_recorded.pid, signal.SIGINT)
    status = half_recorded.wait(PATIENCE_S)

    output = OUTPUT.read_text("utf-8")
    assert status == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output
    assert "upskill: the answers so far are recorded: --upskill-cache auto requests only" in output
    assert "INTERNALERROR" not in output
    assert "never retrieved" not in output
    wait_until(lambda: group_is_gone(half_recorded))
    the_next_run_goes_on()


def test_ctrl_c_is_an_interruption_also_where_it_breaks_the_waiting_for_an_answer(
    pytester: pytest.Pytester, write_skill: WriteSkill, hanging: str
) -> None:
    # It arrives after a condition has given its lock up, and before it expects to be interrupted.
    write_skill()
    pytester.makeconftest(
        """
        from threading import Condition, current_thread, main_thread

        real = Condition.wait

        def wait(self, timeout=None):
            if current_thread() is main_thread() and hasattr(self._lock, "_release_save"):
                self._release_save()
                raise KeyboardInterrupt
            return real(self, timeout)

        Condition.wait = wait
        """
    )

    result = pytester.run(
        forked_commands() / "pytest", "-p", "no:xdist", "--upskill-models", hanging, "skills"
    )

    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_ctrl_c_is_an_interruption_also_where_it_breaks_the_loop_of_pytest_xdist(
    pytester: pytest.Pytester, write_skill: WriteSkill, model: str
) -> None:
    # A lock whose waiting is interrupted at the wrong moment is released without being held.
    write_skill()
    pytester.makeconftest(
        """
        import threading

        from xdist.dsession import DSession

        def loop_once(self):
            lock = threading.Lock()
            with lock:
                lock.release()
                raise KeyboardInterrupt

        DSession.loop_once = loop_once
        """
    )

    result = pytester.run(forked_commands() / "pytest", "-n1", "--upskill-models", model, "skills")

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_killed_run_leaves_whole_recordings_and_the_next_goes_on_from_there(
    half_recorded: Forked, the_next_run_goes_on: Callable[[], None]
) -> None:
    half_recorded.kill()
    half_recorded.wait()

    wait_until(lambda: group_is_gone(half_recorded))
    the_next_run_goes_on()


def test_a_server_that_is_away_for_a_while_costs_no_answer(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    away = range(ANSWERED + 1, ANSWERED + 10)

    def answer(received: Received) -> Reply:
        return Reply(drop=True) if len(loopback.requests) in away else know(received)

    loopback.answer = answer
    write_skill(*CASES)

    result = run("--upskill-models", model, "skills")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=21)


def test_a_folder_that_cannot_be_written_costs_only_the_recordings_and_is_reported_with_q(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    loopback.answer = know
    write_skill()
    Path("notes").write_text("", "utf-8")
    args = ("--upskill-models", model, "skills")

    result = run(*args, "--upskill-cache-dir", "notes/cache", "-q")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["cache: notes/cache: cannot write recordings: Not a directory"])


@pytest.mark.parametrize(
    "what",
    [
        'OSError(28, "No space left on device")',
        'pydantic_core.PydanticSerializationError("surrogates not allowed")',
    ],
)
def test_workers_do_not_wait_for_answers_that_cannot_be_handed_over(
    pytester: pytest.Pytester, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    # The patch that follows must not outlive the test in this process.
    monkeypatch.setattr(Handover, "write_answers", Handover.write_answers)
    write_skill()
    pytester.makeconftest(
        f"""
        import pydantic_core
        from pytest_upskill.session.xdist import Handover

        def write_answers(self, nodeid, answers):
            raise {what}

        Handover.write_answers = write_answers
        """
    )

    result = pytester.runpytest_inprocess(
        *UNTESTED_PLUGINS, "-n2", "--upskill-models", "offline", "--upskill-md=r.md", "skills"
    )

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.duration < PATIENCE_S
    result.stdout.fnmatch_lines(
        [
            "the run was stopped, or the disk is full, before this trial had its answers",
            "*= 1 error, 1 more with the same cause in *",
        ]
    )
    assert "cannot be used" not in Path("r.md").read_text("utf-8")


def test_nothing_is_sent_while_the_figures_of_an_interrupted_run_are_made(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str, pytester: pytest.Pytester
) -> None:
    write_skill(*budget_cases(30))
    loopback.answer = lambda _: Reply(text="37", delay=0.1)
    pytester.makeconftest(
        """
        import time

        def pytest_runtest_logreport(report):
            if report.when == "call":
                raise KeyboardInterrupt

        def pytest_keyboard_interrupt():
            time.sleep(2)
        """
    )

    result = run(
        *("--upskill-models", model, "--upskill-concurrency", "2", "skills"), no_reraise_ctrlc=True
    )

    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert len(loopback.requests) < 20
