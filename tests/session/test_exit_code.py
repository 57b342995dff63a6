"""The report of a session leads to the exit code of the session."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.report.exit_code import why_undecided
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all
from tests.loopback import Loopback
from tests.reporting import cell, report, report_command, trial
from tests.scripted_model import Script
from tests.trials.choosing import choosing

GOOD = {"one": "+++++ -----", "two": "+++++ -----"}


def ends(run_once: Run, *args: str) -> tuple[int, int]:
    """Return the exit code of a session and that of the merge of its report alone."""
    result = run_once(*args, "--upskill-json=report.json")
    return int(result.ret), report_command(["report.json"])


@pytest.mark.parametrize(
    ("cases", "arguments", "code"),
    [
        (GOOD, [], 0),
        (GOOD, ["-k", "one or two"], 0),
        (GOOD, ["-k", "one"], 0),
        (GOOD, ["-k", "one and with_skill"], 0),
        (GOOD, ["-k", "neither"], 5),
        (GOOD, ["-m", "upskill(arm='without_skill')"], 0),
        (GOOD, ["--upskill-min-lift=1", "-k", "one"], 0),
        (GOOD, ["--upskill-min-mean-pass-rate=1"], 0),
        (GOOD, ["--upskill-cache=replay"], 1),
        (GOOD, ["--upskill-compare=baseline"], 75),
        (GOOD, ["--upskill-compare=baseline", "--upskill-baseline-update"], 0),
        ({"one": "---++ -----", "two": "+++++ -----"}, [], 1),
        ({"one": "---++ -----", "two": "+++++ -----"}, ["-x"], 1),
        ({"one": "---++ -----", "two": "+++++ -----"}, ["--upskill-min-pass-rate=0.4"], 0),
        ({"one": "---++ -----", "two": "+++++ -----"}, ["-k", "two"], 0),
        ({"one": "----- +++++", "two": "----- +++++"}, ["--upskill-min-pass-rate=0"], 1),
        ({"one": "++--! -----", "two": "+++++ -----"}, [], 75),
        ({"one": "++--! -----", "two": "-++-- -----"}, [], 1),
        ({"one": "+++++ !!!!!", "two": "+++++ -----"}, [], 75),
        ({"one": "!!!!! !!!!!", "two": "!!!!! !!!!!"}, [], 75),
        ({"one": "+++-! -----", "two": "+---! -----"}, ["--upskill-min-pass-rate=0"], 75),
    ],
)
def test_a_report_ends_as_its_session_did(
    run_once: Run, script: Script, cases: dict[str, str], arguments: list[str], code: int
) -> None:
    assert ends(run_once, *script(**cases), *arguments) == (code, code)


def test_statements_without_a_judge_measure_nothing_in_both(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill({"id": "a", "input": "Be kind.", "expected": {"judge": "It is kind."}})

    assert ends(run_once, "--upskill-models=offline", "skills") == (75, 75)


def test_choices_do_not_measure_how_a_model_answers(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    query = {"id": "q", "input": "Sing.", "should_trigger": False}
    write_skill({"id": "a", "input": "Be kind.", "expected": {"judge": "It is kind."}}, query)
    loopback.answer = choosing({})

    model = f"--upskill-models=m=openai:m@{loopback.openai_url}"
    result = run_once(model, "--upskill-md=r.md", "skills")

    assert result.ret == pytest.ExitCode.OK
    _, title, *_ = Path("r.md").read_text("utf-8").splitlines()
    assert title == "### \u2754 `1 trigger gate passed, not everything was measured`"


@pytest.mark.parametrize(
    ("test", "code"),
    [("pass", 0), ("assert False", 1), ("import pytest; pytest.skip('later')", 0)],
)
@pytest.mark.parametrize("selected", ["test_it", "test_it or one"])
def test_other_tests_of_the_session_count_in_both(
    run_once: Run,
    script: Script,
    pytester: pytest.Pytester,
    *,
    test: str,
    code: int,
    selected: str,
) -> None:
    pytester.makepyfile(f"def test_it(): {test}")

    assert ends(run_once, *script(**GOOD), ".", "-k", selected) == (code, code)


def test_a_file_that_cannot_be_read_is_a_failure_in_both(
    run_once: Run, script: Script, pytester: pytest.Pytester
) -> None:
    args = script(**GOOD)
    pytester.makepyfile(test_broken="nonsense")

    assert ends(run_once, *args, ".", "--continue-on-collection-errors") == (1, 1)


@pytest.mark.parametrize(
    ("strict", "answers", "code"),
    [(False, "----- -----", 0), (False, "+++++ -----", 0), (True, "+++++ -----", 1)],
)
def test_an_expected_failure_is_none_in_both(
    run_once: Run, script: Script, pytester: pytest.Pytester, strict: bool, answers: str, code: int
) -> None:
    pytester.makeconftest(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        f"        if 'one' in item.name: item.add_marker(pytest.mark.xfail(strict={strict}))\n"
    )
    args = script(one=answers, two="+++++ -----")

    assert ends(run_once, *args, "--upskill-fail-on=", "-k", "with_skill") == (code, code)


@pytest.mark.needs("git")
def test_where_no_skill_changed_both_are_green_and_say_so(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill()
    commit_all(pytester.path, "main")
    args = ("--upskill-models=offline", "--upskill-changed-since=HEAD", "--upskill-md=report.md")

    assert ends(run_once, *args, "skills") == (0, 0)

    page = Path("report.md").read_text("utf-8")
    assert page.splitlines()[1] == "### ✅ `Nothing to measure: 1 skill unchanged since HEAD`"
    assert "0 cases" not in page


@pytest.mark.parametrize(("options", "costs"), [("-q", True), ("-qq", False)])
def test_the_reason_is_printed_in_every_verbosity_and_the_cost_in_all_but_the_quietest(
    run: Run, script: Script, pytester: pytest.Pytester, options: str, *, costs: bool
) -> None:
    pytester.makeini(f"[pytest]\naddopts = {options}")

    result = run(*script(one="++--! -----", two="+++++ -----"))

    assert result.ret == 75
    result.stdout.fnmatch_lines(
        [
            "* ERROR at setup of csv: one* *",
            "haiku: HTTP 400 ok",
            "exit code 75: 1 trial not measured: haiku: HTTP 400 ok",
        ]
    )
    assert any(line.startswith("requested 19 answers: ") for line in result.outlines) is costs


def test_the_reason_names_the_error_where_pytest_prints_none(run_once: Run, script: Script) -> None:
    result = run_once(*script(one="++--! -----"), "--tb=no")

    result.stdout.fnmatch_lines(["exit code 75: 1 trial not measured: haiku: HTTP 400 ok"])


def test_each_cause_of_what_is_not_measured_is_named_with_its_count() -> None:
    ids = (f"m: HTTP 400 no model (id {n:08x}-1111-4222-8333-{n:012x}, {n} s)" for n in range(2))
    causes = [next(ids), "timed out", next(ids), "no key", "bad reply", "too long"]
    trials = [
        trial(f"case-{number}", "with_skill", [], errors=(cause,))
        for number, cause in enumerate(causes)
    ]

    assert list(why_undecided(report(cell(*trials))))[:4] == [
        f"2 trials not measured: {causes[0]}",
        "1 trial not measured: timed out",
        "1 trial not measured: no key",
        "2 trials not measured for other reasons",
    ]


def test_a_run_that_is_refused_is_said_to_have_no_other_exit_code(
    run_once: Run, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill()
    monkeypatch.setenv("UPSKILL_API_KEY", "k")

    result = run_once("--upskill-models=a=s@http://127.0.0.1:1/v1,b=s@http://127.0.0.1:2/v1")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.no_fnmatch_line("*exit code*")
    result.stderr.fnmatch_lines(["ERROR: UPSKILL_API_KEY is ambiguous, *"])


def test_only_files_say_that_not_everything_ran_where_pytest_says_why(
    run_once: Run, script: Script
) -> None:
    args = script(one="----- -----", two="+++++ -----")

    result = run_once(*args, "-x", "--upskill-md", "r.md")

    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])
    result.stdout.no_fnmatch_line("*not everything ran*")
    assert "not everything ran: see the output of the run of 20" in Path("r.md").read_text("utf-8")
