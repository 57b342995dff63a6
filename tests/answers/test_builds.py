"""Answers whose code is decided once, and those that only look the same."""

from __future__ import annotations

import asyncio
from typing import cast

from pytest_upskill.answers.progress import InFlight
from pytest_upskill.answers.run import Builds
from pytest_upskill.cases.skill import Case
from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.code import Run
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.checks.files import Left, WorkspaceFile
from pytest_upskill.models import AgentRun, Completion
from tests.planning import planned

CHECK = Run(language="python", code="")


class Listing:
    """Compilers that list the files they are given."""

    def __init__(self) -> None:
        self.decided = 0

    def decide(self, check: Run, _text: str, left: Left) -> tuple[CheckResult, ...]:
        self.decided += 1
        return (CheckResult(name=check.name, passed=True, message=" ".join(sorted(left.files))),)

    def close(self) -> None:
        pass


def test_a_result_is_reused_only_for_runs_that_left_the_same_files() -> None:
    files = (WorkspaceFile(name="keep.txt", text="1"),)
    case = Case(id="case", input="Why?", checks=(CHECK,), workspace=files)
    compilers, (trial, _) = Listing(), planned(case, model="loop:haiku")
    runs = [AgentRun(version="1", deleted=names) for names in ((), ("keep.txt",), ())]

    async def decide() -> list[str]:
        builds = Builds(cast("Compilers", compilers), InFlight())
        answers = [
            await builds.answer(
                trial,
                [CHECK],
                Completion(text="Done.", input_tokens=1, output_tokens=1, agent_run=run),
            )
            for run in runs
        ]
        builds.close()
        return [answer.sandboxed[0][0].message for answer in answers]

    assert asyncio.run(decide()) == ["keep.txt", "", "keep.txt"]
    assert compilers.decided == 2
