"""The first run of a skill, without a key and without a network."""

from __future__ import annotations

import pytest

from tests.conftest import Run, WriteSkill


def test_a_skill_that_holds_the_fact_lifts_the_offline_model(
    run: Run, write_skill: WriteSkill
) -> None:
    write_skill()

    result = run("--upskill-models", "offline", "skills")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["  offline  0->100% *+100 *"])


def test_a_skill_without_the_fact_is_red(run: Run, write_skill: WriteSkill) -> None:
    write_skill(body="Nothing about money here.\n")

    result = run("--upskill-models", "offline", "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["FAILED skills/billing/skill_meta.json::budget?offline-with_skill? - contains *"]
    )
