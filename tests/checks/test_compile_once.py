"""Identical work is done once, and ends with the session."""

from __future__ import annotations

import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_upskill.checks.builds import Compile, Sandboxed
from pytest_upskill.checks.builds import Run as RunCode
from pytest_upskill.checks.compile import CannotCompile, Compilers
from pytest_upskill.checks.compile.built_once import SingleFlight
from tests.compiling import SLOW, build, fenced
from tests.conftest import Run, WriteSkill


@pytest.mark.needs("g++")
def test_one_answer_is_built_once_by_many_threads(programs: list[str]) -> None:
    compilers = Compilers("limits")

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: build(compilers, "cpp", "int x = y;"), range(8)))

    assert len(set(results)) == 1
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
    assert compilers.level == "limits"

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(compilers.decide, check, slow)
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


def test_an_exception_is_remembered_as_a_value_is_and_its_traceback_does_not_grow() -> None:
    memo = SingleFlight[str, int]()
    calls: list[int] = []
    lengths: list[int] = []

    def fail() -> int:
        calls.append(threading.get_ident())
        raise CannotCompile("no")

    for _ in range(3):
        with pytest.raises(CannotCompile, match="no") as caught:
            memo.get("key", fail)
        lengths.append(len(traceback.extract_tb(caught.value.__traceback__)))

    assert len(calls) == 1
    assert len(set(lengths)) == 1


def test_a_compiler_is_asked_about_itself_before_there_is_an_answer(
    pytester: pytest.Pytester, write_skill: WriteSkill, run_once: Run
) -> None:
    write_skill({"id": "a", "input": "Write a.", "expected": {"compile": "slow"}})
    pytester.makeconftest("""
        import asyncio
        import sys
        import threading
        from pathlib import Path

        from pytest_upskill.checks.compile import Built, Command, Compiler, Language
        from pytest_upskill.models import Completion

        ASKED = threading.Event()

        class Toolchain(Compiler):
            def command(self, check):
                ASKED.set()
                program = Path(sys.executable)
                return Command(
                    label="slow", program=program, options=(), suffix="", smallest="", homes=()
                )

            def build(self, sources, check, sandbox):
                return Built(passed=True, compiler="slow", message="builds")

        class Client:
            async def complete(self, request):
                assert await asyncio.to_thread(ASKED.wait, 30)
                return Completion(text="```slow\\na\\n```", input_tokens=1, output_tokens=1)

            async def aclose(self):
                pass

        def pytest_upskill_languages():
            return [Language(name="slow", toolchain=Toolchain())]

        def pytest_upskill_make_client(model, config):
            return Client()
    """)

    result = run_once("--upskill-models", "acme:patient")

    result.assert_outcomes(passed=3)
