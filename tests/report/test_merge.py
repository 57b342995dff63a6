"""Reports of several shards or models make one report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.skill import GateRule
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import NOT_MEASURED
from pytest_upskill.report.files.json import read_json, write_json
from tests.conftest import Run, WriteSkill, budget_cases
from tests.loopback import Loopback
from tests.reporting import counted, report, report_command, save

# Whose folder is empty, and the working directory.
pytestmark = pytest.mark.usefixtures("pytester")


def test_shares_make_the_report_of_the_whole_run(run_once: Run, write_skill: WriteSkill) -> None:
    cases = [
        {"id": f"case-{n}", "input": "What is the budget?", "expected": {"contains": word}}
        for n, word in enumerate(["37", "attempts", "billing", "unknown word", "retry"])
    ]
    cases.append(cases[0] | {"id": "for-others", "models": ["haiku"]})
    folder = write_skill(*cases)
    (folder / "skill_meta.json").write_text(json.dumps({"cases": cases}, indent=1), "utf-8")
    write_skill(name="csv")
    models = "--upskill-models=offline,b=offline:b"
    run_once(models, "--upskill-json=whole.json")
    for number in (1, 2, 3):
        run_once(models, f"--upskill-shard={number}/3", f"--upskill-json={number}.json")

    code = report_command(["3.json", "1.json", "2.json", "--json", "merged.json"])

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


def test_shares_are_held_against_baselines_when_they_are_merged(
    run_once: Run, write_skill: WriteSkill, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("--upskill-models=offline", "--upskill-min-pass-rate=0", "skills")
    write_skill(*budget_cases(9))
    run_once(*args, "--upskill-baseline-update")
    write_skill(*budget_cases(9), body="Nothing about money.\n")
    for number in (1, 2):
        shard = (f"--upskill-shard={number}/2", f"--upskill-json={number}.json")
        run_once(*args, "--upskill-compare=baseline", *shard)

    code = report_command(["1.json", "2.json", "--baselines", ".upskill/baselines"])

    assert code == 1
    assert "(0/9 with the skill, baseline 9/9, p " in capsys.readouterr().out


def test_a_missing_share_leaves_the_gate_open(capsys: pytest.CaptureFixture[str]) -> None:
    whole = counted([(5, 0), (5, 0)])
    made = report(replace(whole, trials=whole.trials[:2]))
    half = replace(made.sessions[0], options={**made.sessions[0].options, "shard": "1/2"})

    code = report_command([save("a.json", replace(made, sessions=(half,)))])

    assert code == 75
    assert "billing on haiku: gate not decided: only 2 of 4 tests ran\n" in capsys.readouterr().out


def test_a_skill_that_a_shard_did_not_measure_is_not_passed_over(
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
    shard = ("--upskill-min-pass-rate=0", "--upskill-cache=off")
    run_once(models, *shard, "--upskill-shard=1/2", "--upskill-json=1.json")
    poor = ("--upskill-max-cost=0.000001", "--upskill-shard=2/2", "--upskill-json=2.json")
    run_once(models, *shard, *poor)

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


def test_a_skill_that_only_a_missing_share_ran_is_not_forgotten(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = []
    for number in (1, 2, 4):
        part = report(counted([(5, 0), (5, 0)], skill=f"skill-{number}"))
        (session,) = part.sessions
        session = replace(session, options={**session.options, "shard": f"{number}/4"})
        files.append(save(f"{number}.json", replace(part, sessions=(session,))))

    assert report_command([*files, "--md", "page.md"]) == 75
    said = "3 gates passed (helps 3), shard 3/4 missing"
    out = capsys.readouterr().out
    assert out.startswith(f"{said}\n")
    assert out.endswith("no report of shard 3/4: the trials that it ran are missing\n")
    assert f"### \N{WHITE QUESTION MARK ORNAMENT} {said}\n" in Path("page.md").read_text("utf-8")


def test_parts_of_different_versions_are_merged_with_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one, other = report(counted([(5, 0)])), report(counted([(5, 0)], model="opus"))
    (session,) = other.sessions
    older = replace(session, versions={**session.versions, "pytest-upskill": "0.0.9"})
    files = [save("a.json", one), save("b.json", replace(other, sessions=(older,)))]

    assert report_command(files) == 0
    assert "warning: made by pytest-upskill 0.0.9 and 0.1.0, " in capsys.readouterr().out


def test_runs_with_different_thresholds_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = report(counted([(5, 0)])), report(counted([(5, 0)], model="opus"))
    (session,) = second.sessions
    changed = replace(session, options={**session.options, "fail_on": []})
    files = [save("a.json", first), save("b.json", replace(second, sessions=(changed,)))]

    assert report_command(files) == 4
    problem = "ERROR: --upskill-fail-on differs between the runs: run them with the same\n"
    assert capsys.readouterr().err == problem


def test_the_same_trial_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    files = [save(name, report(counted([(5, 0)]))) for name in ("a.json", "b.json")]

    assert report_command(files) == 4
    assert capsys.readouterr().err == (
        "ERROR: billing on haiku: 'case-1' with_skill is in a.json and in b.json: leave one out\n"
    )


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"resolved": "openai:haiku"}, "different models (anthropic:haiku, openai:haiku)"),
        ({"planned": 4}, "2 and 4 trials"),
        ({"gate": GateRule(min_lift=0.5)}, "different gates"),
        ({"ref": "main"}, "different gates"),
    ],
)
def test_trials_of_different_cells_are_not_merged(
    change: dict[str, Any], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = counted([(5, 0)])
    files = [save("a.json", report(one)), save("b.json", report(replace(one, **change)))]

    assert report_command(files) == 4
    assert capsys.readouterr().err == (
        f"ERROR: billing on haiku has {what} in a.json and b.json: do not mix them\n"
    )


def test_shares_of_different_commits_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    whole = counted([(5, 0), (5, 0)])
    first, second = whole.trials[:2], whole.trials[2:]
    changed = tuple(replace(t, skill_digest=t.skill_digest and "3333") for t in second)
    files = [
        save("a.json", report(replace(whole, trials=first))),
        save("b.json", report(replace(whole, trials=changed))),
    ]

    assert report_command(files) == 4
    assert "billing on haiku has a different SKILL.md in a.json and b.json" in (
        capsys.readouterr().err
    )
