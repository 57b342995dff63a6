"""What a machine lacks for a moment is not held against an answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_upskill.checks.compile import Compilers
from tests.compiling import build

pytestmark = pytest.mark.needs("gcc")

GOOD = "int f(void) { return 1; }"


@pytest.fixture
def gcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that fails as its script says until there is a file ``again`` in its TMPDIR."""
    program = tmp_path / "toolchain" / "bin" / "gcc"
    program.parent.mkdir(parents=True)
    real = shutil.which("gcc") or "gcc"
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    program.write_text(f'#!/bin/sh\n[ -e "$TMPDIR/again" ] && exec {real} "$@"\n', "utf-8")
    program.chmod(0o755)
    return program


def fail(gcc: Path, how: str) -> None:
    with gcc.open("a", encoding="utf-8") as script:
        script.write(f': > "$TMPDIR/again"\n{how}\n')


@pytest.mark.parametrize(
    "how",
    [
        "kill -9 $$",
        "exit 1",
        "echo 'gcc: fatal error: Killed signal terminated program cc1'; exit 1",
        "echo \"nvcc error   : 'cicc' died due to signal 9 (Kill signal)\"; exit 9",
        "echo 'cc1: error: out of memory allocating 65536 bytes'; exit 1",
        "echo 'gcc: fatal error: fork: Resource temporarily unavailable'; exit 1",
        "echo 'as: error: closing file: No space left on device'; exit 1",
    ],
)
def test_a_compiler_that_fails_for_no_fault_in_the_code_is_called_again(
    gcc: Path, how: str
) -> None:
    fail(gcc, how)

    assert build(Compilers(), "c", GOOD).passed


def test_a_fault_in_the_code_is_final(programs: list[str]) -> None:
    assert not build(Compilers(), "c", "int f(").passed

    # The answer, and the smallest program.
    assert programs.count("../src/answer.c") == 2


def test_code_that_always_needs_too_much_fails(gcc: Path) -> None:
    real = shutil.which("gcc", path="/usr/bin:/bin")
    gcc.write_text(
        "#!/bin/sh\nfor file; do :; done\n"
        'if grep -q big "$file"; then echo "cc1: error: out of memory allocating"; exit 1; fi\n'
        f'exec {real} "$@"\n',
        "utf-8",
    )

    result = build(Compilers(), "c", "int big;")

    assert not result.passed
    assert "out of memory" in result.message
