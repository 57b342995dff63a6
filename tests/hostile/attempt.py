"""One hostile answer: decide about it, and look at the damage."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

from pytest_upskill.checks.code import Run
from pytest_upskill.checks.compile import CannotCompile, Compilers
from pytest_upskill.sandbox.limits import Limits
from tests.hostile.answers import SECRET, Answer
from tests.hostile.targets import state, write_files

LIMITS = Limits(
    wall_s=2, cpu_s=2, memory_bytes=512 << 20, file_bytes=16 << 20, folder_bytes=64 << 20,
    processes=32,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one answer."""

    answer: Answer
    passed: bool | None
    """None where it is undecided."""
    stolen: bool
    harmed: bool
    seconds: float

    @property
    def wrong(self) -> bool:
        """Whether the verdict is wrong; of what steals or harms, only the damage counts."""
        if self.answer.kind in {"theft", "harm"}:
            return False
        return self.passed is not (self.answer.kind == "honest")


def attack(compilers: Compilers, answer: Answer, targets: Mapping[str, object]) -> Finding:
    """Decide about an answer and look at the damage."""
    write_files(Path(str(targets["folder"])))
    before = state(targets)
    start = time.monotonic()
    passed: bool | None
    try:
        result = compilers.decide(answer.check, answer.text)[0]
        passed, text = result.passed, result.message + result.detail
    except CannotCompile as error:
        passed, text = None, str(error)
    executed = isinstance(answer.check, Run)
    # The test of executed code names the secret: only passing it shows that the answer has it.
    stolen = answer.kind == "theft" and (passed is True if executed else SECRET in text)
    return Finding(
        answer=answer,
        passed=passed,
        stolen=stolen,
        harmed=state(targets) != before,
        seconds=time.monotonic() - start,
    )


@contextmanager
def tight_limits() -> Iterator[None]:
    """Lower the limits of programs, so that bombs end soon."""
    with ExitStack() as stack:
        compile_limits = replace(LIMITS, wall_s=10, cpu_s=10, memory_bytes=2 << 30)
        for module, limits in (("python", LIMITS), ("toolchain", compile_limits)):
            stack.enter_context(
                mock.patch(f"pytest_upskill.checks.compile.{module}.LIMITS", limits)
            )
        yield
