"""What a comparison with a baseline reports, and when it fails the gate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.figures.baseline import baseline_of
from pytest_upskill.figures.comparison import against_baseline
from pytest_upskill.report.exit_code import NOT_MEASURED
from tests.conftest import Run, WriteSkill
from tests.figures.conftest import COMPARE, GOOD, LENIENT, UPDATE
from tests.git_repository import commit_all
from tests.reporting import counted
from tests.scripted_model import Script


@pytest.mark.usefixtures("recorded")
def test_fewer_runs_than_the_baseline_has_are_enough(script: Script, run_once: Run) -> None:
    result = run_once(*script(one="--- ---", two="+++ ---"), COMPARE, LENIENT)

    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        ["* worse than the baseline: one (all cases: 3/6 with the skill, *, p = 0.014)"]
    )


@pytest.mark.parametrize("one", ["++++++++++", "+++++++++-"])
@pytest.mark.usefixtures("recorded")
def test_a_skill_that_did_not_become_worse_beyond_chance_is_green(
    script: Script, run_once: Run, one: str
) -> None:
    result = run_once(*script(**(GOOD | {"one": f"{one} ----------"})), COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["csv on haiku: * points against the baseline, not * (* baseline 19/20*)"]
    )


@pytest.mark.usefixtures("recorded")
def test_a_regression_is_red_only_if_fail_on_names_it(script: Script, run_once: Run) -> None:
    args = script(one="---------- ----------", two="---------- ----------")

    result = run_once(*args, COMPARE, LENIENT, "--upskill-fail-on=hurts")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["csv on haiku: the unchanged skill became worse than the baseline: one, two (*"]
    )


def test_a_baseline_does_not_take_over_a_regression_that_it_shows(
    script: Script, run_once: Run, recorded: Path
) -> None:
    before = recorded.read_text("utf-8")
    worse = {"one": "---------- ----------", "two": "++++++++++ ----------"}

    result = run_once(*script(**worse), COMPARE, UPDATE, LENIENT)

    result.stdout.fnmatch_lines_random(
        [
            "next: measure again, and look at what changed in the model or its server; *",
            "no baseline written of csv on haiku: it became worse than this one: *",
        ]
    )
    assert recorded.read_text("utf-8") == before
    assert run_once(*script(**worse), UPDATE, LENIENT).ret == pytest.ExitCode.OK
    assert recorded.read_text("utf-8") != before


NO_BASELINE = "csv on haiku: no baseline: record one with --upskill-runs 10 *-update and commit it"


@pytest.mark.parametrize("quiet", ["-v", "-q"])
def test_a_comparison_without_any_baseline_is_not_green_and_says_how_to_record_one(
    script: Script, run_once: Run, quiet: str
) -> None:
    result = run_once(*script(**GOOD), COMPARE, LENIENT, quiet, "--upskill-md=report.md")

    assert result.ret == NOT_MEASURED
    result.stdout.fnmatch_lines(
        [f"exit code 75: nothing was compared with the baseline: {NO_BASELINE}"]
    )
    heading = Path("report.md").read_text("utf-8").splitlines()[1]
    assert heading == "### \u2754 `csv on haiku: helps, gate passed, not everything was measured`"


def test_a_comparison_of_nothing_does_not_hide_that_a_case_failed(
    script: Script, run_once: Run
) -> None:
    result = run_once(*script(one="- -"), COMPARE)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"nothing was compared with the baseline: {NO_BASELINE}"])


def test_a_case_that_changed_is_new_or_is_gone_is_listed_and_not_compared(
    script: Script, run_once: Run, recorded: Path
) -> None:
    text = recorded.read_text("utf-8")
    digest = json.loads(text)["cases"][0]["grader"]
    recorded.write_text(text.replace(digest, "another-grader", 1), "utf-8")

    result = run_once(
        *script(one="--- ---", two="+++ ---", three="+++ ---"), COMPARE, LENIENT, "-q"
    )
    nothing = run_once(*script(one="--- ---", four="+++ ---"), COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            f"csv on haiku: not compared, {word} since the baseline: {case}"
            for word, case in [("changed", "one"), ("new", "three")]
        ]
    )
    assert nothing.ret == NOT_MEASURED
    nothing.stdout.fnmatch_lines(
        [
            "csv on haiku: no case in common with the baseline: record one with *",
            "csv on haiku: not compared, changed since the baseline: one",
            "csv on haiku: not compared, new since the baseline: four",
            "csv on haiku: not compared, removed since the baseline: two",
            "exit code 75: nothing was compared with the baseline: csv on haiku: no case *",
        ]
    )


def test_a_case_without_a_run_is_not_reported_as_gone() -> None:
    baseline = baseline_of(counted([(5, 0), (5, 0), (5, 0)]))
    errors = tuple(
        replace(trial, runs=(), errors=("no reply",)) for trial in counted([(5, 0), (5, 0)]).trials
    )
    now = replace(
        counted([(5, 0)]), skipped=("case-3",), trials=counted([(5, 0)]).trials + errors[2:]
    )

    comparison = against_baseline(now, baseline)

    assert comparison.notes == (
        "not compared, without a valid run with the skill now: case-2, case-3",
    )


@pytest.mark.usefixtures("recorded")
def test_a_model_that_changed_makes_a_regression_a_warning(script: Script, run_once: Run) -> None:
    args = script(one="---------- ++++++++++", two="++++++++++ ----------")

    result = run_once(*args, COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "csv on haiku: -45 points against the baseline (10/20 *, baseline 19/20, p = 0.00014)",
            "csv on haiku: warning: the model has changed: 10/20 without the skill, *",
        ]
    )


@pytest.mark.usefixtures("recorded")
def test_an_api_that_names_another_model_makes_a_regression_a_warning(
    script: Script, run_once: Run
) -> None:
    args = script(one="---------- ----------", two="++++++++++ ----------")
    args = tuple(arg.replace("haiku-1", "haiku-2") for arg in args)

    result = run_once(*args, COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["* warning: the model is haiku-2 now, haiku-1 in the baseline: regressions are *"]
    )


@pytest.mark.usefixtures("recorded")
def test_a_difference_without_the_skill_that_chance_explains_is_no_new_model(
    script: Script, run_once: Run
) -> None:
    args = script(one="---------- ++++------", two="++++++++++ ----------")

    result = run_once(*args, COMPARE, LENIENT)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line("*the model has changed*")


@pytest.mark.needs("git")
def test_baselines_that_a_branch_edits_or_deletes_are_named(
    write_skill: WriteSkill, run_once: Run, pytester: pytest.Pytester
) -> None:
    for name in ("billing", "shipping"):
        write_skill(name=name)
    args = ("--upskill-models=offline", "skills")
    run_once(*args, UPDATE)
    commit_all(pytester.path)
    (file,) = pytester.path.glob(".upskill/baselines/skills/billing/*/*.json")
    file.unlink()

    result = run_once(*args, COMPARE, "--upskill-md=r.md")
    of_ref = run_once(*args, "--upskill-compare=HEAD")

    line = "baselines changed since HEAD (1 edited or deleted): review them like code (git *)"
    of_ref.stdout.fnmatch_lines([line])
    result.stdout.fnmatch_lines([line])
    page = Path("r.md").read_text("utf-8")
    assert page.splitlines()[1].startswith("### \u2754")
    assert "not everything was compared" in page
    assert "baselines changed since HEAD" in page


@pytest.mark.needs("git")
def test_a_run_does_not_call_its_own_baselines_a_change(
    write_skill: WriteSkill, run_once: Run, pytester: pytest.Pytester
) -> None:
    folder = write_skill()
    run_once("--upskill-models=offline", "skills", UPDATE)
    commit_all(pytester.path)
    folder.joinpath("SKILL.md").write_bytes(folder.joinpath("SKILL.md").read_bytes() + b"More.\n")

    result = run_once("--upskill-models=offline", "skills", COMPARE, UPDATE)

    result.stdout.no_fnmatch_line("baselines changed *")
