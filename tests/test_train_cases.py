"""Cases that a skill was written or chosen with: they run, but do not enter its lift."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Run, WriteSkill, budget_cases


def test_a_train_case_runs_and_can_fail_but_is_left_out_of_the_lift(
    write_skill: WriteSkill, run_once: Run, model: str, pytester: pytest.Pytester
) -> None:
    held_out, train = budget_cases(2)
    unknown = {"id": "known", "input": "37?", "expected": {"contains": "No idea"}, "train": True}
    write_skill(held_out, train | {"train": True}, unknown)

    result = run_once(
        "skills", f"--upskill-models={model}", "--upskill-runs=5", "--upskill-json=out.json"
    )

    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["*billing on m: 2 train cases are left out of the lift"])
    (entry,) = json.loads((pytester.path / "out.json").read_text("utf-8"))["entries"]
    assert entry["figures"]["lift"]["estimate"] == 1
    assert entry["figures"]["with_skill"]["pass_rate"] == 1
