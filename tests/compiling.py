"""Answers to compile, and what comes of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.code import Compile, Run
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.sandbox.limits import Level
from pytest_upskill.sandbox.run import Outcome, Sandbox

SLOW = "#define A(x) x x x x x x x x\n#define B(x) A(A(A(A(A(A(A(A(A(x)))))))))\nint x = 0 B(+1);\n"
"""C and C++ that no compiler finishes soon."""


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the last argument of each compiler that is started; the sandbox's own do not count."""
    started: list[str] = []
    run = Sandbox.run

    def noted(self: Sandbox, program: list[str], *args: object, **kwargs: object) -> Outcome:
        if program[0] != "/bin/sh":
            started.append(program[-1])
        return run(self, program, *args, **kwargs)  # type: ignore[arg-type]  # as it came

    monkeypatch.setattr(Sandbox, "run", noted)
    return started


def fenced(language: str, code: str) -> str:
    """Make an answer whose code starts on line 4."""
    return f"Here it is:\n\n```{language}\n{code}\n```\nThat is all.\n"


def python(code: str) -> str:
    return fenced("python", code)


def run(answer: str, code: str, level: Level = "auto") -> CheckResult:
    """Run the test code of a case on the code of an answer."""
    (result,) = Compilers(level).decide(Run(language="python", code=code), answer)
    return result


def build(
    compilers: Compilers,
    language: str,
    code: str,
    *,
    arch: str | None = None,
    flags: tuple[str, ...] = (),
    files: Mapping[str, str] | None = None,
) -> CheckResult:
    """Build an answer that holds ``code`` alone."""
    check = Compile(language=language, arch=arch, flags=flags, files=files or {})
    reason = compilers.missing(check)
    assert reason is None, f"this test needs a real compiler: {reason}"
    (result,) = compilers.decide(check, fenced(language, code))
    return result
