"""What a machine cannot compile is told before anything is paid for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.checks.code import Compile
from pytest_upskill.checks.compile import CannotCompile, Compilers
from tests.compiling import fenced


def _program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose only folder of programs is empty."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr("pytest_upskill.checks.compile.c_family.SYSTEM_NVCC", tmp_path / "nvcc")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    return tmp_path / "bin"


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("language", "reason"),
    [
        ("c", "no gcc or clang on PATH: install one"),
        ("cpp", r"no g\+\+ or clang\+\+ on PATH"),
        ("cuda", r"no nvcc on PATH.*: install .*'pytest-upskill\[cuda\]'"),
        ("cobol", "no compiler is known for language 'cobol'"),
    ],
)
def test_a_machine_without_the_compiler_says_so(language: str, reason: str) -> None:
    compilers = Compilers()
    check = Compile(language=language)

    missing = compilers.missing(check)

    assert missing is not None
    assert "\n" not in missing
    with pytest.raises(CannotCompile, match=reason):
        compilers.decide(check, fenced(language, "x"))


@pytest.mark.usefixtures("bare")
def test_python_is_always_there() -> None:
    assert Compilers().missing(Compile(language="python")) is None


def test_nvcc_without_a_host_compiler_is_missing(bare: Path) -> None:
    _program(bare, "nvcc", "exit 1")

    missing = Compilers().missing(Compile(language="cuda"))

    assert missing == "nvcc needs a C++ compiler for the host: no g++ or clang++ on PATH"


@pytest.mark.parametrize("place", ["PATH", "CUDA_HOME", "CUDA_PATH", "system", "wheel"])
def test_nvcc_is_found_wherever_it_is_installed(
    place: str, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(bare, "g++", "exit 1")
    home = tmp_path / "nvidia" / "cu13"
    _program(home / "bin", "nvcc", "exit 1")
    if place == "PATH":
        monkeypatch.setenv("PATH", f"{bare}:{home / 'bin'}")
    elif place == "system":
        monkeypatch.setattr(
            "pytest_upskill.checks.compile.c_family.SYSTEM_NVCC", home / "bin" / "nvcc"
        )
    elif place == "wheel":
        (tmp_path / "nvidia" / "__init__.py").touch()
        monkeypatch.undo()
        monkeypatch.setenv("PATH", str(bare))
        monkeypatch.setattr("pytest_upskill.checks.compile.c_family.SYSTEM_NVCC", tmp_path / "none")
        monkeypatch.syspath_prepend(str(tmp_path))
    else:
        monkeypatch.setenv(place, str(home))

    assert Compilers().missing(Compile(language="cuda")) is None


def test_clang_stands_in_for_gcc(bare: Path) -> None:
    _program(bare, "clang", "exit 1")

    assert Compilers().missing(Compile(language="c")) is None


@pytest.mark.parametrize("script", ["exit 1", "echo 'broken: cannot execute cc1'; exit 1"])
def test_a_compiler_that_builds_nothing_leaves_the_check_undecided(bare: Path, script: str) -> None:
    _program(bare, "gcc", script)

    with pytest.raises(CannotCompile, match="cannot build even an empty program here"):
        Compilers("limits").decide(Compile(language="c"), fenced("c", "int x;"))


def test_a_compiler_that_recovers_decides_again(bare: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    finds_a_z = (
        'for file; do :; done; while read -r line; do [ "$line" != "int z;" ] || exit 1; done'
    )
    _program(bare, "gcc", f'[ -e {broken} ] && exit 1; {finds_a_z} < "$file"')
    compilers = Compilers("limits")
    with pytest.raises(CannotCompile):
        compilers.decide(Compile(language="c"), fenced("c", "int z;"))

    broken.unlink()

    (result,) = compilers.decide(Compile(language="c"), fenced("c", "int z;"))
    assert not result.passed


def test_a_sandbox_that_does_not_work_leaves_the_check_undecided(bare: Path) -> None:
    _program(bare, "gcc", "exit 0")

    with pytest.raises(CannotCompile, match="sandbox level 'bwrap' does not work"):
        Compilers("bwrap").decide(Compile(language="c"), fenced("c", "int x;"))
