"""Reports of several jobs make one report."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from pytest_upskill.cases.skill import GateRule
from pytest_upskill.figures.cell import Cell
from pytest_upskill.report.document import Option
from pytest_upskill.report.exit_code import NOT_MEASURED
from pytest_upskill.report.files.json import read_json, write_json
from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback
from tests.reporting import counted, report, report_command, save

# Whose folder is empty, and the working directory.
pytestmark = pytest.mark.usefixtures("pytester")


def test_folders_make_the_report_of_the_whole_run(run_once: Run, write_skill: WriteSkill) -> None:
    cases = [
        {"id": f"case-{n}", "input": "What is the budget?", "expected": {"contains": word}}
        for n, word in enumerate(["37", "attempts", "billing", "unknown word", "retry"])
    ]
    cases.append(cases[0] | {"id": "for-others", "models": ["haiku"]})
    write_skill(*cases)
    write_skill(name="csv")
    models = "--upskill-models=offline,b=offline:b"
    run_once(models, "--upskill-json=whole.json")
    for name in ("billing", "csv"):
        run_once(models, f"skills/{name}", f"--upskill-json={name}.json")

    code = report_command(["csv.json", "billing.json", "--json", "merged.json"])

    whole, merged = (read_json(Path(f"{name}.json").read_bytes()) for name in ("whole", "merged"))
    assert code == report_command(["whole.json"])
    assert [each.cell.skipped for each in whole.gates] == [("for-others",)] * 2 + [()] * 2
    assert [without_times(each.cell) for each in merged.gates] == [
        without_times(each.cell) for each in whole.gates
    ]
    assert [(gate.outcome, gate.text) for gate in merged.gates] == [
        (gate.outcome, gate.text) for gate in whole.gates
    ]


def without_times(one: Cell) -> object:
    cleared = json.loads(
        write_json(report(one)),
        object_hook=lambda value: {k: v for k, v in value.items() if k != "latency_s"},
    )
    return cleared["entries"][0]["gate"]["cell"]


def test_a_report_has_every_limit_of_its_run(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill()
    limits = {"min_lift": 0.1, "min_mean_pass_rate": 0.2, "min_recall": 0.3}
    limits["max_false_triggers"] = 0.4
    assert limits.keys() == {limit.name for limit in fields(GateRule)}
    options = (f"--upskill-{name.replace('_', '-')}={value}" for name, value in limits.items())

    run_once("--upskill-models=offline", *options, "--upskill-json=r.json", "skills")

    (session,) = read_json(Path("r.json").read_bytes()).sessions
    assert {name: session.options[name] for name in limits} == limits


def test_jobs_are_held_against_baselines_when_they_are_merged(
    run_once: Run, write_skill: WriteSkill, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("--upskill-models=offline", "--upskill-min-pass-rate=0")
    write_skill(*budget_cases(9))
    write_skill(name="csv")
    run_once(*args, "skills", "--upskill-baseline-update")
    write_skill(*budget_cases(9), body="Nothing about money.\n")
    for name in ("billing", "csv"):
        job = (f"skills/{name}", f"--upskill-json={name}.json")
        run_once(*args, "--upskill-compare=baseline", *job)

    code = report_command(["billing.json", "csv.json"])

    assert code == 1
    assert "(all cases: 0/9 with the skill, baseline 9/9, p " in capsys.readouterr().out


def test_missing_trials_leave_the_gate_open(capsys: pytest.CaptureFixture[str]) -> None:
    whole = counted([(5, 0), (5, 0)])
    made = report(replace(whole, trials=whole.trials[:2]))
    other = report(counted([(5, 0), (5, 0)], skill="csv"))

    code = report_command([save("a.json", made), save("b.json", other)])

    assert code == 0
    printed = capsys.readouterr().out
    assert "billing on haiku: gate not decided: only 2 of 4 tests ran\n" in printed
    assert printed.count("only 2 of 4 tests ran") == 1


def test_a_skill_that_a_job_did_not_measure_is_not_passed_over(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    pytester: pytest.Pytester,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill()
    write_skill(name="shipping")
    pytester.makeini("[pytest]\nupskill_prices = m = 1/10")
    models = f"--upskill-models=m@{loopback.openai_url}"
    job = ("--upskill-min-pass-rate=0", "--upskill-cache=off")
    run_once(models, *job, "skills/billing", "--upskill-json=1.json")
    poor = ("--upskill-max-cost=0.000001", "skills/shipping", "--upskill-json=2.json")
    run_once(models, *job, *poor)

    code = report_command(["1.json", "2.json", "--md", "out.md", "--html", "out.html"])

    told = "not measured, as every case was skipped: "
    assert code == NOT_MEASURED
    assert told in capsys.readouterr().out
    assert told in Path("out.md").read_text("utf-8")
    assert told in Path("out.html").read_text("utf-8")


def test_models_of_several_jobs_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    one = save("a.json", report(counted([(5, 0), (5, 0)])))
    other = save("b.json", report(counted([(0, 5), (0, 5)], model="opus")))

    code = report_command([one, other, "--md", "out/page.md", "--html", "out/page.html"])

    assert code == 1
    page = Path("out/page.md").read_text("utf-8")
    assert "| skill | `haiku` | `opus` |" in page
    assert "1 of 2 gates failed" in Path("out/page.html").read_text("utf-8")
    out = capsys.readouterr().out
    assert "FAILED skills/billing/skill_meta.json::gate[opus] - " in out
    assert "the skill hurts" in out


@pytest.mark.parametrize(
    ("option", "value"), [("fail_on", []), ("compare", "origin/main")], ids=str
)
def test_runs_with_different_thresholds_or_comparisons_are_refused(
    option: str, value: Option, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = report(counted([(5, 0)])), report(counted([(5, 0)], model="opus"))
    (session,) = second.sessions
    changed = replace(session, options={**session.options, option: value})
    files = [save("a.json", first), save("b.json", replace(second, sessions=(changed,)))]

    assert report_command(files) == 4
    name = option.replace("_", "-")
    problem = f"ERROR: --upskill-{name} differs between the runs: run them with the same\n"
    assert capsys.readouterr().err == problem


def test_the_same_skill_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    files = [save(name, report(counted([(5, 0)]))) for name in ("a.json", "b.json")]

    assert report_command(files) == 4
    assert capsys.readouterr().err == (
        "ERROR: billing on haiku is in a.json and in b.json: leave one out\n"
    )
