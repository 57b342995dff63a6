"""Code that was built in an earlier session is not built again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_upskill.checks.builds import AtMost, Compile
from pytest_upskill.checks.compile import Built, Compilers
from pytest_upskill.checks.compile.built_once import BuildCache
from tests.compiling import build, fenced
from tests.conftest import Run, WriteSkill

FORGETTING = "-p", "no:cacheprovider"


@pytest.fixture
def session(tmp_path: Path) -> Callable[[], Compilers]:
    """Start another session on one machine."""
    return lambda: Compilers("limits", folder=tmp_path / "builds")


@pytest.mark.needs("gcc", "g++", "nvcc")
@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "x = 1"),
        ("python", "x = = 1"),
        ("c", "int x;"),
        ("c", "int x = y;"),
        ("cpp", "auto x = 1;"),
        ("cuda", "__global__ void k() {}"),
        ("cuda", "int x;"),
    ],
)
def test_the_next_session_decides_the_same_and_starts_no_program(
    session: Callable[[], Compilers], programs: list[str], language: str, code: str
) -> None:
    first = build(session(), language, code)
    started = len(programs)

    second = build(session(), language, code)

    assert second == first
    assert len(programs) == started > 0


@pytest.mark.needs("nvcc")
def test_figures_of_the_device_code_are_remembered(
    session: Callable[[], Compilers], programs: list[str]
) -> None:
    check = Compile(language="cuda", requires=(AtMost(name="max_registers", most=64),))
    text = fenced("cuda", "__global__ void k(int *p) { *p = 1; }")
    first = session().decide(check, text)
    started = len(programs)

    second = session().decide(check, text)

    assert second == first
    assert [result.passed for result in second] == [True, True]
    assert len(programs) == started


@pytest.mark.needs("gcc")
@pytest.mark.parametrize(
    ("code", "flags", "files"),
    [
        ("int y;", (), {}),
        ("int x;", ("-O2",), {}),
        ("int x;", (), {"a.h": "int z;"}),
        ("\nint x;", (), {}),
    ],
)
def test_another_question_is_built(
    session: Callable[[], Compilers],
    programs: list[str],
    code: str,
    flags: tuple[str, ...],
    files: dict[str, str],
) -> None:
    build(session(), "c", "int x;")

    build(session(), "c", code, flags=flags, files=files)

    assert len(programs) == 2


@pytest.mark.needs("gcc")
def test_another_compiler_builds_it_again(
    session: Callable[[], Compilers],
    programs: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gcc = tmp_path / "bin" / "gcc"
    gcc.parent.mkdir()
    gcc.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "$@"\n', "utf-8")
    gcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(gcc.parent), prepend=":")
    build(session(), "c", "int x;")

    gcc.write_text(gcc.read_text("utf-8") + "# a newer one\n", "utf-8")
    build(session(), "c", "int x;")

    assert len(programs) == 2


@pytest.mark.needs("gcc")
def test_an_outcome_that_cannot_be_read_is_built_again(
    session: Callable[[], Compilers], programs: list[str], tmp_path: Path
) -> None:
    build(session(), "c", "int x;")
    (file,) = (tmp_path / "builds").iterdir()
    file.write_text("{", "utf-8")

    assert build(session(), "c", "int x;").passed
    assert build(session(), "c", "int x;").passed

    assert len(programs) == 2


def test_a_build_that_ran_into_a_limit_is_not_kept(tmp_path: Path) -> None:
    remembered = BuildCache(tmp_path)

    remembered.keep("slow", Built(passed=False, compiler="c", message="takes more than 60 s"))

    assert remembered.find("slow") is None
    assert list(tmp_path.iterdir()) == []


def test_a_build_that_cannot_be_kept_raises_no_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    remembered = BuildCache(file)

    remembered.keep("a", Built(passed=True, compiler="c", message="builds", lasting=True))

    assert remembered.find("a") is None


@pytest.mark.needs("gcc")
@pytest.mark.parametrize(("args", "again"), [((), 0), (("--cache-clear",), 1), (FORGETTING, 1)])
def test_the_cache_of_pytest_remembers_builds(
    run_once: Run, write_skill: WriteSkill, programs: list[str], args: tuple[str, ...], again: int
) -> None:
    example = "The code that is wanted:\n\n```c\nint wanted(void) { return 1; }\n```\n"
    question = "What is the code that is wanted?"
    write_skill({"id": "code", "input": question, "expected": {"compile": "c"}}, body=example)
    first = run_once("--upskill-models", "offline")
    built = programs.count("../src/answer.c")

    second = run_once("--upskill-models", "offline", *args)

    assert first.ret == second.ret == pytest.ExitCode.OK
    assert built == 1
    assert programs.count("../src/answer.c") == built + again
