"""``-k``, ``-m``, ``--lf``, ``-x`` and others select and stop trials as tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback

META = "skills/billing/skill_meta.json"
GREEN = {"id": "green", "input": QUESTION, "expected": {"contains": "37"}, "tags": ["money"]}
RED = {"id": "red", "input": QUESTION, "expected": {"contains": "38"}}
MODELS = ("--upskill-models", "offline,other=offline")
SHUFFLE = """
    def pytest_collection_modifyitems(items):
        items.sort(key=lambda item: item.name[::-1])
"""


@pytest.fixture(autouse=True)
def _cases(write_skill: WriteSkill) -> None:
    write_skill(GREEN, RED)


def ran(result: pytest.RunResult) -> list[str]:
    return sorted(_ran(result))


def _ran(result: pytest.RunResult) -> Iterator[str]:
    """Name what ran, gates aside, from a run with -v."""
    for line in result.outlines:
        words = line.split()
        name = next((word for word in words if word.startswith(f"{META}::")), "")
        verdict = {"PASSED", "FAILED", "BASELINE", "ERROR"} & set(words)
        if name and verdict and "::gate[" not in name and " - " not in line:
            yield name.removeprefix(f"{META}::")


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (("-k", "green and other"), ["green[other-with_skill]", "green[other-without_skill]"]),
        (("-k", "money and with_skill"), ["green[offline-with_skill]", "green[other-with_skill]"]),
        (
            ("-m", "upskill(case='red', arm='without_skill')"),
            ["red[offline-without_skill]", "red[other-without_skill]"],
        ),
        (
            ("-m", "upskill(skill='billing', model='other', arm='with_skill')"),
            ["green[other-with_skill]", "red[other-with_skill]"],
        ),
    ],
)
def test_expressions_select_by_skill_case_model_arm_and_tag(
    run_once: Run, args: tuple[str, ...], names: list[str]
) -> None:
    result = run_once(*MODELS, "-v", *args, "skills")

    assert ran(result) == names


def test_an_expression_selects_by_the_name_in_the_skill_file(
    run_once: Run, write_skill: WriteSkill
) -> None:
    file = write_skill(RED) / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace("name: billing", "name: invoices"), "utf-8")

    result = run_once(
        "--upskill-models=offline", "-v", "-W", "ignore", "-k", "invoices and not with_skill"
    )

    assert ran(result) == ["red[offline-without_skill]"]


@pytest.mark.parametrize(
    ("name", "names"),
    [
        (
            "green",
            [
                "green[offline-with_skill]",
                "green[offline-without_skill]",
                "green[other-with_skill]",
                "green[other-without_skill]",
            ],
        ),
        ("red[other-with_skill]", ["red[other-with_skill]"]),
    ],
)
def test_a_node_id_selects_a_case_or_one_of_its_trials(
    run_once: Run, name: str, names: list[str]
) -> None:
    result = run_once(*MODELS, "-v", f"{META}::{name}")

    assert ran(result) == names


@pytest.mark.parametrize("name", ["absent", "gate[offline]"])
def test_a_name_that_is_no_trial_is_not_found(
    run_once: Run, write_skill: WriteSkill, name: str
) -> None:
    write_skill()

    result = run_once(*MODELS, f"{META}::{name}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: not found: *"])


def test_last_failed_runs_what_failed_alone(run: Run) -> None:
    run("--upskill-models", "offline", "skills")

    result = run("--upskill-models", "offline", "-v", "--lf", "skills")

    assert ran(result) == ["red[offline-with_skill]"]


def test_failed_first_runs_what_failed_before_the_rest(run_once: Run) -> None:
    run_once("--upskill-models", "offline", "skills")

    result = run_once("--upskill-models", "offline", "-v", "--ff", "skills")

    assert next(_ran(result)) == "red[offline-with_skill]"
    assert len(ran(result)) == 4


def test_after_a_red_gate_alone_last_failed_runs_everything(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(GREEN | {"expected": {"not_contains": "38"}})
    run_once("--upskill-models", "offline", "--upskill-min-lift", "0.5", "skills")

    result = run_once("--upskill-models", "offline", "-v", "--lf", "skills")

    assert ran(result) == ["green[offline-with_skill]", "green[offline-without_skill]"]


def test_the_first_failure_stops_a_run(run: Run, write_skill: WriteSkill) -> None:
    write_skill(RED, *({**GREEN, "id": f"green-{n}"} for n in range(20)))

    result = run("--upskill-models", "offline", "-x", "-v", "skills")

    assert result.ret != pytest.ExitCode.OK
    assert result.parseoutcomes()["failed"] == 1
    assert "red[offline-with_skill]" in ran(result)
    assert len(ran(result)) < 40
    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])


def test_a_run_that_may_stop_early_sends_few_requests_in_vain(
    run: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill(*({**RED, "id": f"red-{n}"} for n in range(20)))
    models = ("--upskill-models", f"m@{loopback.openai_url}", "--upskill-concurrency", "2")

    result = run(*models, "--maxfail", "2", "skills")

    # A red trial and its baseline twice, a few on each worker, and four ahead of those.
    assert 2 <= result.parseoutcomes()["failed"] <= 4
    assert len(loopback.requests) < 20


@pytest.mark.parametrize("option", ["--collect-only", "--setup-only", "--setup-plan"])
def test_an_option_that_runs_no_test_sends_no_request(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, option: str
) -> None:
    write_skill()

    result = run_once("--upskill-models", f"m@{loopback.openai_url}", option, "skills")

    assert result.ret == pytest.ExitCode.OK
    assert loopback.requests == []
    result.stdout.no_fnmatch_line("*trials*")


def test_a_deselected_trial_sends_no_request(run_once: Run, loopback: Loopback) -> None:
    run_once("--upskill-models", f"m@{loopback.openai_url}", "-k", "red and with_skill", "skills")

    assert len(loopback.requests) == 1


def test_items_may_run_in_any_order(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(SHUFFLE)

    result = run("--upskill-models", "offline", "skills")

    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["  offline  0->50% *"])


def test_a_trial_run_again_counts_once(run: Run) -> None:
    result = run("--upskill-models", "offline", "--reruns", "2", "-v", "skills")

    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"], outcomes["rerun"]) == (4, 1, 2)
    result.stdout.fnmatch_lines(["  offline  0->50% *"])
    assert result.stdout.str().count("- answer -") == 1


def test_a_stepwise_run_sends_few_requests_beyond_its_first_failure(
    run: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill(*({**RED, "id": f"red-{n}", "input": f"{QUESTION} {n}"} for n in range(20)))
    model = ("--upskill-models", f"m@{loopback.openai_url}", "--upskill-concurrency", "2")

    run(*model, "--stepwise", "skills")

    assert len(loopback.requests) <= 3 * 2 + 1


@pytest.mark.parametrize("mark", ["skip", "skipif(True, reason='')", "xfail(run=False)"])
def test_nothing_is_requested_for_trials_that_a_mark_keeps_from_running(
    run: Run, pytester: pytest.Pytester, model: str, loopback: Loopback, mark: str
) -> None:
    pytester.makeconftest(
        f"""
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                if item.name.startswith("red"):
                    item.add_marker(pytest.mark.{mark})
        """
    )

    result = run("--upskill-models", model, "skills")

    assert len(loopback.requests) == 2
    outcomes = result.parseoutcomes()
    assert outcomes.get("skipped", 0) + outcomes.get("xfailed", 0) >= 2
    assert "INTERNALERROR" not in result.stdout.str()


@pytest.mark.parametrize(
    ("mark", "option"),
    [
        ("xfail(run=False)", "--runxfail"),
        ("xfail('1 == 2', run=False, reason='')", "-v"),
    ],
)
def test_trials_that_run_in_spite_of_a_mark_have_their_answers(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    model: str,
    mark: str,
    option: str,
) -> None:
    write_skill(GREEN)
    pytester.makeconftest(
        f"""
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.{mark})
        """
    )

    result = run_once("--upskill-models", model, option, "skills")

    result.assert_outcomes(passed=3)
