"""Which items a case file makes, on which models, and where they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import QUESTION, Run, WriteSkill

CASE = {"id": "budget", "input": QUESTION, "expected": {"contains": "37"}}
META = "skills/billing/skill_meta.json"


def collected(run: Run, *args: str) -> list[str]:
    result = run("--upskill-models", "offline", "--collect-only", "-q", "skills", *args)
    return [line for line in result.outlines if "::" in line]


def test_every_case_is_an_item_on_each_model_in_each_arm(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(CASE, CASE | {"id": "v1.2"})

    ids = collected(run_once, "--upskill-models", "other=offline")

    assert ids == [
        f"{META}::{case}[{model}-{arm}]"
        for case in ("budget", "v1.2")
        for model in ("offline", "other")
        for arm in ("with_skill", "without_skill")
    ]


def test_names_do_not_change_with_the_number_of_runs(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()

    assert collected(run_once) == collected(run_once, "--upskill-runs", "7")


def test_a_case_runs_on_the_models_it_names_only(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(CASE | {"models": ["other"]})

    ids = collected(run_once, "--upskill-models", "other=offline")

    assert [name.partition("[")[2] for name in ids] == ["other-with_skill]", "other-without_skill]"]


def test_a_case_for_none_of_the_models_is_skipped_on_all_of_them(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(CASE, CASE | {"id": "hard", "models": ["haiku", "opus"]})

    result = run_once("--upskill-models", "offline,other=offline", "-rs", "skills")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=6, skipped=4)
    reason = (
        "only for haiku or opus, and this run is on offline, other: choose another model, "
        "or correct 'models' in the case"
    )
    skipped = [line for line in result.outlines if line.startswith("SKIPPED")]
    assert skipped
    assert all(line.endswith(f"skills/billing/skill_meta.json: {reason}") for line in skipped)


def test_a_failure_is_located_at_the_line_of_its_case(
    run_once: Run, write_skill: WriteSkill
) -> None:
    folder = write_skill()
    text = json.dumps({"cases": [CASE, CASE | {"id": "red", "expected": {"contains": "38"}}]})
    (folder / "skill_meta.json").write_text(text.replace("{", "\n{"))

    run_once("--upskill-models", "offline", "skills", "-o", "junit_family=xunit1", "--junitxml=x")

    xml = Path("x").read_text()
    # JUnit's lines count from 0, as pytest writes them.
    assert 'name="red[offline-with_skill]" ' in xml
    assert f'file="{META}" line="4"' in xml
