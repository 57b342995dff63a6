"""Identical work is done once, and ends with the session."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_upskill.checks.code import Compile, Sandboxed
from pytest_upskill.checks.code import Run as RunCode
from pytest_upskill.checks.compile import CannotCompile, Compilers
from pytest_upskill.checks.files import RunsCommand
from tests.compiling import SLOW, build, fenced


@pytest.mark.needs("g++")
def test_one_answer_is_built_once(programs: list[str]) -> None:
    compilers = Compilers("limits")

    first, second = (build(compilers, "cpp", "int x = y;") for _ in range(2))

    assert first == second
    # The second is the smallest program: it shows that the machine can build at all.
    assert programs == ["../src/answer.cpp"] * 2


@pytest.mark.parametrize(
    ("language", "code", "flags"),
    [("cpp", "int x;", ()), ("c", "int y;", ()), ("c", "int x;", ("-O2",))],
)
@pytest.mark.needs("gcc", "g++")
def test_another_question_is_another_build(
    programs: list[str], language: str, code: str, flags: tuple[str, ...]
) -> None:
    compilers = Compilers("limits")

    build(compilers, "c", "int x;")
    build(compilers, language, code, flags=flags)

    assert len(programs) == 2


@pytest.mark.needs("g++")
def test_closing_ends_a_build_undecided() -> None:
    compilers = Compilers()
    assert build(compilers, "cpp", "int x;").passed
    slow = fenced("cpp", SLOW)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(compilers.decide, Compile(language="cpp"), slow)
        time.sleep(0.5)
        compilers.close()
        with pytest.raises(CannotCompile, match="the session ended"):
            future.result(20)


def test_closing_ends_a_test_run_undecided() -> None:
    compilers = Compilers("limits")
    check = RunCode(language="python", code="answer()")
    slow = fenced("python", "import time\ndef answer():\n    time.sleep(60)\n")
    assert compilers.open_sandbox().level == "limits"

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(compilers.decide, check, slow)
        time.sleep(0.5)
        compilers.close()
        with pytest.raises(CannotCompile, match="the session ended"):
            future.result(20)


def test_closing_ends_a_command_undecided() -> None:
    compilers = Compilers("limits")
    assert compilers.open_sandbox().level == "limits"

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(compilers.decide, RunsCommand(command="sleep 60"), "")
        time.sleep(0.5)
        compilers.close()
        with pytest.raises(CannotCompile, match="the session ended"):
            future.result(20)


def test_a_sandbox_is_not_made_once_the_session_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    compilers = Compilers()
    missing = compilers.missing

    def close_meanwhile(check: Sandboxed) -> str | None:
        compilers.close()
        return missing(check)

    monkeypatch.setattr(compilers, "missing", close_meanwhile)

    with pytest.raises(CannotCompile, match="the session has ended"):
        compilers.decide(Compile(language="python"), fenced("python", "x = 1"))
