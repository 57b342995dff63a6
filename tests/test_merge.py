from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.report.command import main
from pytest_upskill.report.document import Report
from pytest_upskill.report.json_report import generate_schema, read_json, write_json
from tests.conftest import Run, WriteSkill
from tests.reporting import cell, counted, report, run, trial


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def save(name: str, written: Report) -> str:
    Path(name).write_text(write_json(written), "utf-8")
    return name


def test_shares_make_the_report_of_the_whole_run(
    run_once: Run,
    write_skill: WriteSkill,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = [
        {"id": f"case-{n}", "input": "What is the budget?", "expected": {"contains": word}}
        for n, word in enumerate(["37", "attempts", "billing", "no such word", "retry"])
    ]
    folder = write_skill(*cases)
    (folder / "skill_meta.json").write_text(json.dumps({"cases": cases}, indent=1), "utf-8")
    write_skill(name="csv")
    models = "--upskill-models=offline,b=offline:b"
    monkeypatch.chdir(pytester.path)
    run_once(models, "--upskill-json=whole.json")
    for number in (1, 2, 3):
        run_once(models, f"--upskill-shard={number}/3", f"--upskill-json={number}.json")

    code = main(["3.json", "1.json", "2.json", "--json", "merged.json"])

    whole, merged = (read_json(Path(f"{name}.json").read_bytes()) for name in ("whole", "merged"))
    assert code == main(["whole.json"])
    assert [without_times(each) for each in merged.cells] == [
        without_times(each) for each in whole.cells
    ]
    assert [(gate.outcome, gate.text) for gate in merged.gates] == [
        (gate.outcome, gate.text) for gate in whole.gates
    ]


def without_times(one: object) -> object:
    cleared = json.loads(
        write_json(report(one)),  # type: ignore[arg-type]
        object_hook=lambda value: {k: v for k, v in value.items() if k != "latency_s"},
    )
    return cleared["entries"][0]["cell"]


def test_a_missing_share_leaves_the_gate_open(capsys: pytest.CaptureFixture[str]) -> None:
    whole = counted([(5, 0), (5, 0)])
    half = replace(whole, trials=whole.trials[:2])

    code = main([save("a.json", report(half))])

    assert code == 75
    assert "SKIPPED" in capsys.readouterr().out


def test_models_of_several_jobs_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    one = save("a.json", report(counted([(5, 0), (5, 0)])))
    other = save("b.json", report(counted([(0, 5), (0, 5)], model="opus")))

    code = main([one, other, "--md", "out/page.md", "--html", "out/page.html"])

    assert code == 1
    page = Path("out/page.md").read_text("utf-8")
    assert "| skill | `haiku` | `opus` |" in page
    assert "1 of 2 gates failed" in Path("out/page.html").read_text("utf-8")
    out = capsys.readouterr().out
    assert "FAILED skills/billing/skill_meta.json::gate[opus]: " in out
    assert "the skill hurts" in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 1),
        (["--fail-on", "no-effect"], 0),
        (["--fail-on="], 0),
        (["--fail-on=", "--min-lift", "0.1"], 1),
        (["--fail-on=", "--min-pass-rate", "0.5"], 1),
    ],
)
def test_thresholds_are_those_given_else_those_of_the_runs(arguments: list[str], code: int) -> None:
    file = save("a.json", report(counted([(0, 5), (0, 5)])))

    assert main([file, *arguments]) == code


def test_runs_with_different_thresholds_need_one_to_be_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = report(counted([(5, 0)])), report(counted([(5, 0)], model="opus"))
    (session,) = second.sessions
    changed = replace(session, options={**session.options, "fail_on": []})
    files = [
        save("a.json", first),
        save("b.json", replace(second, sessions=(changed,))),
    ]

    assert main(files) == 4
    assert capsys.readouterr().err == "ERROR: the runs had different thresholds: say --fail-on\n"
    assert main([*files, "--fail-on", "hurts"]) == 0


def test_the_same_trial_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    files = [save(name, report(counted([(5, 0)]))) for name in ("a.json", "b.json")]

    assert main(files) == 4
    assert capsys.readouterr().err == (
        "ERROR: billing on haiku: 'case-1' with_skill is in a.json and in b.json: leave one out\n"
    )


def test_different_models_of_one_label_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    one = counted([(5, 0)])
    files = [
        save("a.json", report(one)),
        save("b.json", report(replace(one, resolved="openai:haiku"))),
    ]

    assert main(files) == 4
    assert "is not the same in a.json and b.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "ERROR: no report: name the files that --upskill-json wrote\n"),
        (["missing.json"], "ERROR: missing.json: No such file or directory\n"),
        (["bad.json"], "ERROR: bad.json: not a report of format 1: the file: Invalid JSON: *\n"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.json").write_text("nonsense", "utf-8")

    assert main(arguments) == 4
    pytest.LineMatcher([capsys.readouterr().err]).fnmatch_lines([problem])


def test_a_case_missed_in_a_merged_report_keeps_its_answer() -> None:
    missed = run(passed=False, text="I do not know.")
    half = cell(trial("a", "with_skill", [missed]), trial("a", "without_skill", [run()]))

    main([save("a.json", report(half)), "--md", "page.md"])

    assert "I do not know." in Path("page.md").read_text("utf-8")


def test_the_command_tells_github_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "outputs"))

    main([save("a.json", report(counted([(5, 0), (5, 1)])))])

    assert "billing on haiku" in Path("summary.md").read_text("utf-8")
    assert Path("outputs").read_text("utf-8").startswith("verdict=helps\nlift=0.9000\n")


def test_the_command_is_a_module() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "pytest_upskill", "report", "--schema"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert process.stdout == generate_schema()


def test_another_command_is_answered_with_the_usage() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "pytest_upskill"], capture_output=True, text=True, check=False
    )

    assert process.returncode == 4
    assert process.stderr == "usage: python -m pytest_upskill report REPORT.json ...\n"
