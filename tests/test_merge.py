from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cells import Cell
from pytest_upskill.report.command import main
from pytest_upskill.report.document import Report
from pytest_upskill.report.json_report import generate_schema, read_json, write_json
from pytest_upskill.skill import GateRule
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Reply
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
    assert "billing on haiku: no decision: 2 of 4 trials ran\n" in capsys.readouterr().out


def test_models_of_several_jobs_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    one = save("a.json", report(counted([(5, 0), (5, 0)])))
    other = save("b.json", report(counted([(0, 5), (0, 5)], model="opus")))

    code = main([one, other, "--md", "out/page.md", "--html", "out/page.html"])

    assert code == 1
    page = Path("out/page.md").read_text("utf-8")
    assert "| skill | `haiku` | `opus` |" in page
    assert "1 of 2 gates failed" in Path("out/page.html").read_text("utf-8")
    out = capsys.readouterr().out
    assert "FAILED skills/billing/skill_meta.json::gate[opus] - " in out
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
    cell = counted([(0, 5), (0, 5)])
    lenient = replace(cell, trials=tuple(replace(t, min_pass_rate=0.0) for t in cell.trials))
    file = save("a.json", report(lenient))

    assert main([file, *arguments]) == code


@pytest.mark.parametrize(
    ("answer", "arguments", "code"),
    [
        (Reply(text="37"), [], 0),
        (Reply(text="38"), [], 1),
        (Reply(text="37"), ["--upskill-min-lift=0.2"], 1),
        (Reply(status=400), [], 75),
        (Reply(text="37"), ["--upskill-cache=replay"], 1),
    ],
)
def test_a_report_ends_as_its_run_did(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    *,
    answer: Reply,
    arguments: list[str],
    code: int,
) -> None:
    loopback.answer = lambda _: answer
    write_skill()
    models = f"--upskill-models=m=openai:some@{loopback.openai_url}"

    result = run_once(models, *arguments, "--upskill-json=r.json", "skills")

    assert (result.ret, main(["r.json"])) == (code, code)


@pytest.mark.parametrize("arguments", [[], ["--fail-on="]])
def test_a_trial_that_failed_is_red_as_it_was_in_its_run(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = save("a.json", report(counted([(5, 0), (5, 0), (4, 0)])))

    assert main([file, *arguments]) == 1
    out = capsys.readouterr().out
    assert out.startswith("billing on haiku: helps, gate passed, 1 trial failed\n")
    assert out.endswith(
        "FAILED skills/billing/skill_meta.json::case-3[haiku-with_skill] - 4 of 5 runs passed\n"
    )


def unanswered(of: int) -> Cell:
    """Make a cell of which one trial has no reply to its only run."""
    whole = counted([(1, 0)] * of, of=1)
    first, *rest = whole.trials
    return replace(whole, trials=(replace(first, runs=(), errors=("haiku: no reply",)), *rest))


def test_a_trial_without_a_result_is_not_green(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([save("a.json", report(unanswered(of=20)))]) == 75
    out = capsys.readouterr().out
    assert "billing on haiku: helps, gate passed, 1 trial not measured\n" in out
    assert "ERROR skills/billing/skill_meta.json::case-1[haiku-with_skill] - haiku: no reply" in out


def test_what_a_replay_lacks_is_red() -> None:
    one = report(unanswered(of=20))
    (session,) = one.sessions
    replayed = replace(session, options={**session.options, "cache": "replay"})

    assert main([save("a.json", replace(one, sessions=(replayed,)))]) == 1


def test_a_skill_that_only_a_missing_share_ran_is_not_forgotten(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = []
    for number in (1, 2, 4):
        part = report(counted([(5, 0), (5, 0)], skill=f"skill-{number}"))
        (session,) = part.sessions
        session = replace(session, options={**session.options, "shard": f"{number}/4"})
        files.append(save(f"{number}.json", replace(part, sessions=(session,))))

    assert main([*files, "--md", "page.md"]) == 75
    said = "3 gates passed (helps 3), share 3/4 missing"
    out = capsys.readouterr().out
    assert out.startswith(f"{said}\n")
    assert out.endswith("no report of share 3/4: what only they ran is not in here\n")
    assert f"### \N{WHITE QUESTION MARK ORNAMENT} {said}\n" in Path("page.md").read_text("utf-8")


def test_a_part_whose_run_was_cut_short_leaves_the_whole_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    part = report(counted([(5, 0), (5, 0)]))
    (session,) = part.sessions
    cut = replace(part, sessions=(replace(session, complete=False),))

    assert main([save("a.json", cut)]) == 75
    out = capsys.readouterr().out
    assert out.startswith("billing on haiku: helps, gate passed, 1 run cut short\n")
    assert "the run of 2026-01-02 03:04 UTC was stopped, or could not read a file: " in out


@pytest.mark.parametrize(
    ("words", "complete"), [('"contains": "37"', True), ('"contians": "37"', False)]
)
def test_a_report_knows_whether_its_run_could_read_every_file(
    run: Run, write_skill: WriteSkill, pytester: pytest.Pytester, words: str, complete: bool
) -> None:
    write_skill()
    other = write_skill(name="csv")
    case = '{"cases": [{"id": "a", "input": "What is the budget?", "expected": {%s}}]}'
    (other / "skill_meta.json").write_text(case % words, "utf-8")

    run("--upskill-models=offline", "--upskill-json=r.json", "skills")

    (session,) = read_json((pytester.path / "r.json").read_bytes()).sessions
    assert session.complete is complete


def test_a_report_knows_whether_its_run_was_stopped(
    run: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill({"id": "red", "input": "Why?", "expected": {"contains": "no such word"}})
    write_skill(name="csv")

    run("--upskill-models=offline", "--upskill-json=r.json", "-x", "skills")

    (session,) = read_json((pytester.path / "r.json").read_bytes()).sessions
    assert not session.complete


def test_parts_of_different_versions_are_merged_with_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one, other = report(counted([(5, 0)])), report(counted([(5, 0)], model="opus"))
    (session,) = other.sessions
    older = replace(session, versions={**session.versions, "pytest-upskill": "0.0.9"})
    files = [save("a.json", one), save("b.json", replace(other, sessions=(older,)))]

    assert main(files) == 0
    assert "warning: made by pytest-upskill 0.0.9 and 0.1.0, " in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"resolved": "openai:haiku"}, "different models (anthropic:haiku, openai:haiku)"),
        ({"planned": 4}, "2 and 4 trials"),
        ({"gate": GateRule(min_lift=0.5)}, "different gates"),
        ({"ref": "main"}, "different gates"),
    ],
)
def test_what_is_not_of_one_cell_is_refused(
    change: dict[str, Any], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = counted([(5, 0)])
    files = [save("a.json", report(one)), save("b.json", report(replace(one, **change)))]

    assert main(files) == 4
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

    assert main(files) == 4
    assert "billing on haiku has a different SKILL.md in a.json and b.json" in (
        capsys.readouterr().err
    )


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
