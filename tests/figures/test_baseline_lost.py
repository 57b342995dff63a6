"""What a baseline has and a run no longer measures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import Run, WriteSkill

OK, FAILED = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED
POT = {"id": "pot", "input": "What does the tea pot hold?", "expected": {"contains": "3 litres"}}
LID = {"id": "lid", "input": "Which colour is the tea lid?", "expected": {"contains": "green"}}
TEXT = "The tea pot holds 3 litres.\n\nThe tea lid is green.\n"
HEADS = {OK: "\u2754", NOT_MEASURED: "\u2754", FAILED: "\u274c"}
Compare = Callable[..., tuple[int, str, str]]


@pytest.fixture
def compare(write_skill: WriteSkill, run_once: Run) -> Compare:
    """Record baselines of two skills; then compare, and return exit code, title and output."""
    write_skill(POT, LID, name="tea", body=TEXT)
    write_skill()
    run_once("--upskill-models=offline", "--upskill-baseline-update", "skills")

    def compared(*args: str) -> tuple[int, str, str]:
        both = ("--upskill-compare=baseline", "--upskill-md=r.md", *args)
        result = run_once("--upskill-models=offline", *both, "skills")
        return int(result.ret), Path("r.md").read_text("utf-8").splitlines()[1], str(result.stdout)

    return compared


@pytest.mark.parametrize("cases", [[POT], [POT, {**LID, "expected": {"contains": "tea"}}]])
@pytest.mark.parametrize("fail_on", ["regression", "regression,cases"])
def test_a_case_that_was_removed_or_changed_costs_the_tick(
    compare: Compare, cases: list[object], fail_on: str
) -> None:
    Path("skills/tea/skill_meta.json").write_text(json.dumps({"cases": cases}), "utf-8")

    code, title, out = compare(f"--upskill-fail-on={fail_on}")

    assert code == (FAILED if "cases" in fail_on else OK)
    assert title.startswith(f"### {HEADS[code]}")
    assert "not everything was compared" in title
    assert "since the baseline: lid" in out


def test_a_case_of_another_name_is_still_the_same(compare: Compare) -> None:
    cases = {"cases": [POT, {**LID, "id": "colour-of-the-lid"}]}
    Path("skills/tea/skill_meta.json").write_text(json.dumps(cases), "utf-8")

    code, title, out = compare("--upskill-fail-on=regression,cases")

    assert code == OK
    assert title.startswith("### \u2705 `2 gates passed")
    assert "not compared" not in out
    assert "tea on offline: +0 points against the baseline, not worse (2/2 with" in out


def _delete_the_file() -> None:
    Path("skills/tea/skill_meta.json").unlink()


def _rename_the_file() -> None:
    Path("skills/tea/skill_meta.json").rename("skills/tea/meta.json")


def _delete_the_skill() -> None:
    _delete_the_file()
    Path("skills/tea/SKILL.md").unlink()


@pytest.mark.parametrize(
    ("change", "ends_with"),
    [(_delete_the_file, NOT_MEASURED), (_rename_the_file, NOT_MEASURED), (_delete_the_skill, OK)],
)
def test_a_case_file_that_is_not_measured_any_more_is_named(
    compare: Compare, change: Callable[[], None], ends_with: int
) -> None:
    change()

    code, title, out = compare()
    strict, _, _ = compare("--upskill-fail-on=regression,cases")

    assert (code, strict) == (ends_with, FAILED)
    assert title.startswith("### \u2754")
    assert (
        "skills/tea/skill_meta.json has a baseline that nothing was compared with: restore it"
        in out
    )
    assert "has no cases" not in out


@pytest.mark.parametrize("args", [("-k", "budget"), ("--deselect=skills/tea/skill_meta.json",)])
def test_what_was_left_out_on_purpose_is_not_lost(compare: Compare, args: tuple[str, ...]) -> None:
    code, _, out = compare(*args)

    assert code == OK
    assert "has a baseline" not in out


def test_what_another_run_measures_is_not_lost(compare: Compare, run_once: Run) -> None:
    compare()

    result = run_once("--upskill-models=offline", "--upskill-compare=baseline", "skills/billing")

    assert "has a baseline" not in str(result.stdout)
