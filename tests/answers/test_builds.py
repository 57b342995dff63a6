"""Answers whose code is decided once, and those that only look the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from pytest_upskill.answers.builds import Builds
from pytest_upskill.checks import CheckResult, Run
from pytest_upskill.checks.files import Files, WorkspaceFile
from pytest_upskill.compile import Compilers
from pytest_upskill.completion import AgentRun, Completion
from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.model import parse_model
from pytest_upskill.spending.in_flight import InFlight
from pytest_upskill.trials.trial import Trial, plan

CHECK = Run(language="python", code="")


class Listing:
    """Compilers that list the files they are given."""

    def __init__(self) -> None:
        self.decided = 0

    def prepare(self, check: object) -> None:
        pass

    def decide(self, check: Run, _text: str, files: Files) -> tuple[CheckResult, ...]:
        self.decided += 1
        return (CheckResult(name=check.name, passed=True, message=" ".join(sorted(files))),)

    def close(self) -> None:
        pass


def trial() -> Trial:
    files = (WorkspaceFile(name="keep.txt", text="1"),)
    skill = Skill(
        name="billing",
        text="Facts.",
        case_file=Path("skills/billing/skill_meta.json"),
        cases=(Case(id="case", input="Why?", checks=(CHECK,), workspace=files),),
    )
    models = [parse_model("loop:haiku")]
    return next(plan(skill, models, runs=1, min_pass_rate=1.0, max_tokens=100))


def test_a_result_is_reused_only_for_runs_that_left_the_same_files() -> None:
    compilers, asked = Listing(), trial()
    runs = [AgentRun(version="1", deleted=names) for names in ((), ("keep.txt",), ())]

    async def decide() -> list[str]:
        builds = Builds(cast("Compilers", compilers), InFlight(), [CHECK])
        answers = [
            await builds.answer(
                asked,
                [CHECK],
                Completion(text="Done.", input_tokens=1, output_tokens=1, agent_run=run),
            )
            for run in runs
        ]
        builds.close()
        return [answer.compiled[0][0].message for answer in answers]

    assert asyncio.run(decide()) == ["keep.txt", "", "keep.txt"]
    assert compilers.decided == 2
