"""Answers are recorded and used again in the next run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import NOT_MEASURED
from tests import junit
from tests.conftest import Run, WriteSkill, budget_cases, recordings
from tests.loopback import Loopback, Reply

pytestmark = pytest.mark.usefixtures("skill")


def test_a_second_run_sends_nothing_and_has_the_same_results(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*budget_cases(2))

    first = run("--upskill-models", model, "--upskill-runs", "2", "skills")
    sent = len(loopback.requests)
    second = run("--upskill-models", model, "--upskill-runs", "2", "skills")

    assert sent == 8
    assert len(loopback.requests) == sent
    assert (first.ret, second.ret) == (pytest.ExitCode.OK, pytest.ExitCode.OK)
    first.stdout.fnmatch_lines(["requested 8 answers: cost n/a"])
    second.stdout.fnmatch_lines(
        [
            "upskill: 4 trials, 8 answers: 8 recorded, 0 to request",
            "replayed 8 answers: original cost unknown",
        ]
    )


def test_a_changed_skill_asks_again_only_with_the_skill(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*budget_cases(2))
    run_once("--upskill-models", model, "skills")
    loopback.requests.clear()
    write_skill(*budget_cases(2), body="It is 37.\n")

    run_once("--upskill-models", model, "skills")

    assert len(loopback.requests) == 2
    assert all("It is 37." in received.system for received in loopback.requests)


def test_two_labels_of_one_model_are_asked_once(
    run_once: Run, loopback: Loopback, model: str
) -> None:
    result = run_once(
        "--upskill-models", model, "--upskill-models", model.replace("m=", "n="), "skills"
    )

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 2


def test_a_damaged_recording_is_reported_and_requested_again(
    run_once: Run, loopback: Loopback, model: str
) -> None:
    run_once("--upskill-models", model, "skills")
    damaged = recordings()[0]
    damaged.write_text("<<<<<<< HEAD", "utf-8")

    result = run_once("--upskill-models", model, "skills")

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 3
    shown = damaged.relative_to(Path.cwd())
    result.stdout.fnmatch_lines([f"cache: {shown}: ignored: not a recording"])


def test_trouble_is_never_recorded(run_once: Run, loopback: Loopback, model: str) -> None:
    good = loopback.answer
    loopback.answer = lambda _: Reply(status=400, text="no such parameter")

    bad = run_once("--upskill-models", model, "skills")

    assert bad.ret == NOT_MEASURED
    assert recordings() == []

    loopback.answer = good
    assert run_once("--upskill-models", model, "skills").ret == pytest.ExitCode.OK


def test_offline_answers_are_never_recorded(run_once: Run) -> None:
    run_once("--upskill-models", "offline,other=offline", "skills")

    assert not Path(".upskill").exists()


@pytest.mark.usefixtures("canned_client")
def test_a_plugins_answers_are_not_recorded_as_those_of_a_vendors_model(run_once: Run) -> None:
    run_once("--upskill-models", "haiku", "skills")
    assert recordings() == []

    run_once("--upskill-models", "acme:small", "skills")
    assert len(recordings()) == 2


def figures(pytester: pytest.Pytester) -> list[dict[str, str]]:
    """Read what JUnit XML says of both trials."""
    cases = junit.cases_of(pytester.path / "out.xml")
    return [junit.properties(cases[f"budget[m-{arm}]"]) for arm in ("with_skill", "without_skill")]


def test_recorded_figures_are_reported_and_marked(
    run_once: Run, loopback: Loopback, model: str, pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nupskill_prices = m = 1/2\n")
    loopback.replies.append(Reply(status=503, headers={"retry-after-ms": "1"}))
    args = ("--upskill-models", model, "--junitxml", "out.xml", "skills")

    asked = run_once(*args)
    first = figures(pytester)
    run_once(*args)
    second = figures(pytester)

    asked.stdout.fnmatch_lines(["requested 2 answers: below $0.0001; 1 request was retried"])
    assert [trial["upskill.replayed"] for trial in first] == ["0", "0"]
    assert second == [trial | {"upskill.replayed": "1"} for trial in first]
    assert {trial["upskill.cost_usd"] for trial in first} == {"0.000025"}
    assert sorted(trial["upskill.attempts"] for trial in first) == ["1", "2"]


def test_a_cache_folder_that_is_a_file_is_refused(run_once: Run) -> None:
    Path("notes").write_text("", "utf-8")

    result = run_once("--upskill-models", "offline", "--upskill-cache-dir", "notes", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --upskill-cache-dir: */notes is not a folder*"])


def test_answers_that_no_trial_looked_at_count_in_what_was_paid(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*budget_cases(5))
    loopback.answer = lambda received: Reply(
        text="38", delay=0.5 if "(0)" in received.user and received.system else 0
    )

    result = run("--upskill-models", model, "-x", "skills")

    paid = len(recordings())
    assert paid > 1
    result.stdout.fnmatch_lines([f"requested {paid} answers: cost n/a"])


def test_an_answer_that_several_trials_share_is_paid_for_once(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*budget_cases(2))
    write_skill(*budget_cases(2), name="shipping")

    result = run("--upskill-models", model, "--upskill-json", "out.json", "skills")

    entries = json.loads(Path("out.json").read_text("utf-8"))["entries"]
    runs = [
        run
        for entry in entries
        for trial in entry["gate"]["cell"]["trials"]
        for run in trial["runs"]
    ]
    assert len(loopback.requests) == len([r for r in runs if not r["completion"]["replayed"]]) == 6
    result.stdout.fnmatch_lines(["requested 6 answers: *; replayed 2 answers: *"])
