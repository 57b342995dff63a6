"""Without models the plugin collects, says and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill


def test_without_models_a_case_file_is_not_collected(
    run: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill()
    pytester.makepyfile("def test_ordinary(): pass")

    result = run()

    result.assert_outcomes(passed=1)


def test_where_pytest_finds_nothing_else_one_line_says_how_to_run_the_skills(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()
    evals = write_skill(name="shipping") / "evals"
    evals.mkdir()
    (evals / "evals.json").write_text("[]", "utf-8")

    result = run_once("skills")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    said = [line for line in result.outlines if line.startswith("upskill")]
    assert said == ["upskill: no models chosen for case files: --upskill-models offline runs them"]
    assert not Path(".upskill").exists()


def test_a_case_file_without_a_skill_is_not_mentioned(
    run_once: Run, pytester: pytest.Pytester
) -> None:
    pytester.makefile(".json", evals="[]")

    result = run_once()

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.no_fnmatch_line("upskill: *")


@pytest.mark.parametrize("args", [["-k", "none_of_them"], ["-qq", "skills"]])
def test_with_options_that_run_no_test_nothing_is_said_of_skills(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, args: list[str]
) -> None:
    write_skill()
    pytester.makepyfile("def test_ordinary(): pass")

    result = run_once(*args)

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.no_fnmatch_line("*upskill: *")


def test_with_models_and_no_skill_there_is_no_summary(
    run_once: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile("def test_ordinary(): pass")

    result = run_once("--upskill-models", "offline")

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*skills:*")
    result.stdout.no_fnmatch_line("*trials*")


@pytest.mark.parametrize(
    ("name", "code"), [("", pytest.ExitCode.INTERRUPTED), ("::budget", pytest.ExitCode.USAGE_ERROR)]
)
def test_a_case_file_that_is_asked_for_without_models_says_what_to_write(
    run_once: Run, write_skill: WriteSkill, name: str, code: pytest.ExitCode
) -> None:
    write_skill()

    result = run_once(f"skills/billing/skill_meta.json{name}")

    assert result.ret == code
    result.stdout.fnmatch_lines(["skill_meta.json: no models chosen: write --upskill-models, *"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("what", ["dry-run", "cache-prune", "baseline-update"])
def test_an_option_that_needs_models_says_so_without_them(
    run_once: Run, write_skill: WriteSkill, what: str
) -> None:
    write_skill()

    result = run_once(f"--upskill-{what}", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --upskill-{what}: no models chosen: write *"])


def test_a_setting_without_models_may_be_there_for_other_runs(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill()
    pytester.makepyfile("def test_ordinary(): pass")

    run_once("--upskill-runs", "3", "--upskill-cache", "replay").assert_outcomes(passed=1)


def test_without_the_plugin_its_options_are_unknown(run_once: Run) -> None:
    result = run_once("-p", "no:upskill", "--upskill-models", "offline")

    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_the_garbage_collector_is_the_same_for_other_tests(
    run: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    # gc.get_referrers does not see frozen objects: hypothesis would warn about its own generators.
    write_skill()
    pytester.makeconftest("""
        import gc

        frozen = gc.get_freeze_count()
        before = gc.isenabled(), gc.get_threshold()

        def pytest_runtest_setup():
            assert gc.get_freeze_count() <= frozen
            assert (gc.isenabled(), gc.get_threshold()) == before
    """)

    result = run("--upskill-models", "offline")

    result.assert_outcomes(passed=3)


@pytest.mark.parametrize("args", [["--help"], ["--markers"]], ids=" ".join)
def test_a_mistake_in_the_ini_file_does_not_keep_the_help_from_the_user(
    run_once: Run, pytester: pytest.Pytester, args: list[str]
) -> None:
    pytester.makeini("[pytest]\nupskill_models = no-such-model")

    assert run_once(*args).ret == pytest.ExitCode.OK


@pytest.mark.parametrize("key", ["upskill_compare", "upskill_changed_since"])
def test_a_ref_in_the_ini_file_stops_no_run_without_skills(
    run_once: Run, pytester: pytest.Pytester, key: str
) -> None:
    pytester.makeini(f"[pytest]\nupskill_models = offline\n{key} = origin/main")
    pytester.makepyfile("def test_ordinary(): pass")

    run_once().assert_outcomes(passed=1)


def test_a_folder_name_that_is_unsafe_to_print_stops_no_run_without_skills(
    run_once: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile("def test_ordinary(): pass")
    (pytester.path / "data" / "a\u200db").mkdir(parents=True)

    run_once("--upskill-models", "offline").assert_outcomes(passed=1)
