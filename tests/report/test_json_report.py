"""The JSON report: its schema, and that it is read back unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pytest_upskill.report.document import ANSWER_LIMIT
from pytest_upskill.report.files import json as json_report
from pytest_upskill.report.files.json import ReportError, read_json, write_json
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback
from tests.pages import OUT_OF_DATE
from tests.reporting import cell, counted, report, run, trial
from tests.shipped.schemas import report_schema

PUBLISHED = Path(json_report.__file__).with_name("report.schema.json").read_text("utf-8")


def read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def test_the_published_schema_is_the_one_that_the_types_make() -> None:
    assert report_schema() == PUBLISHED, OUT_OF_DATE


def test_a_report_keeps_to_the_published_schema() -> None:
    text = write_json(report(counted([(5, 0), (4, 1)]), counted([(0, 0)], model="opus")))

    Draft202012Validator(json.loads(PUBLISHED)).validate(json.loads(text))


def test_a_report_read_back_is_the_report_that_was_written() -> None:
    written = report(
        counted([(5, 0), (4, 1)]),
        cell(
            trial(
                "a",
                "with_skill",
                [run(text='"\u202e\x00\ud83d'.encode("utf-8", "replace").decode())],
            ),
            trial("a", "without_skill", [run(tokens=None)], errors=("429 after 5 attempts",)),
        ),
    )

    assert read_json(write_json(written)) == written


def test_figures_stand_beside_the_trials_that_they_are_made_of() -> None:
    entry = json.loads(write_json(report(counted([(5, 0), (5, 1)]))))["entries"][0]

    assert entry["figures"]["verdict"] == "helps"
    assert entry["figures"]["lift"] == pytest.approx(0.9)
    assert entry["figures"]["passes.with"] == 10
    assert entry["gate"]["outcome"] == "passed"
    assert entry["gate"]["text"] == "billing on haiku: the skill helps"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not valid JSON: name a file that --upskill-json wrote"),
        ("{}", "not a report of format 1 (format: Field required): name a file that --*"),
        (
            '{"format": 2, "sessions": [], "entries": []}',
            "not a report of format 1 (format: Input should be 1): name a file that --*",
        ),
    ],
)
def test_a_file_that_is_no_report_is_refused_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(ReportError) as caught:
        read_json(text)

    pytest.LineMatcher(str(caught.value).splitlines()).fnmatch_lines([problem], consecutive=True)
    assert "\n" not in str(caught.value)


def test_a_run_writes_its_report_where_the_command_was_given(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()

    result = run_once("--upskill-models", "offline", "--upskill-json", "out/report.json", "skills")

    document = read(Path("out", "report.json"))
    trials = document["entries"][0]["gate"]["cell"]["trials"]
    assert [each["arm"] for each in trials] == ["with_skill", "without_skill"]
    assert trials[0]["question"] == "What is the retry budget of the billing service?"
    assert document["sessions"][0]["models"] == {"offline": "offline:offline"}
    assert document["sessions"][0]["options"]["runs"] == 1
    result.stdout.fnmatch_lines(["upskill report: *report.json"])


def test_a_report_holds_no_secret_and_no_folder_of_the_machine(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_skill()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    url = loopback.openai_url.replace("//", "//user:sk-very-secret@")

    run_once(
        f"--upskill-models=m=openai:some@{url}",
        "--upskill-cache=replay",
        f"--upskill-cache-dir={pytester.path}/recordings",
        "--upskill-json=r.json",
    )

    text = (pytester.path / "r.json").read_text("utf-8")
    assert "no recording in recordings" in text
    assert "sk-very-secret" not in text
    assert str(pytester.path) not in text


def test_a_long_answer_is_cut_and_the_report_says_by_how_much(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill()
    loopback.answer = lambda _: "37" * ANSWER_LIMIT

    run_once(f"--upskill-models=m=openai:some@{loopback.openai_url}", "--upskill-json", "r.json")

    (answer,) = read(Path("r.json"))["entries"][0]["gate"]["cell"]["trials"][0]["runs"]
    assert len(answer["completion"]["text"]) == ANSWER_LIMIT
    assert answer["left_out"] == ANSWER_LIMIT


@pytest.mark.parametrize("idle", ["--upskill-dry-run", "--collect-only"])
def test_a_run_of_nothing_writes_no_report(
    run_once: Run, write_skill: WriteSkill, idle: str
) -> None:
    write_skill()

    run_once("--upskill-models", "offline", "--upskill-json", "r.json", idle, "skills")

    assert not Path("r.json").exists()


def test_a_report_that_cannot_be_written_makes_a_green_run_red(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()
    Path("taken").write_text("", "utf-8")

    result = run_once("--upskill-models", "offline", "--upskill-json", "taken/r.json", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["cannot write *r.json: *"])


def test_a_folder_is_no_place_for_a_report(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill()

    result = run_once("--upskill-models", "offline", "--upskill-json", "skills", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --upskill-json: *: a folder: *"])


@pytest.mark.parametrize("kind", ["json", "md", "html"])
def test_a_report_replaces_a_report_and_nothing_else(
    run_once: Run, write_skill: WriteSkill, kind: str
) -> None:
    write_skill()
    given = ("--upskill-models", "offline", "skills", f"--upskill-{kind}")
    Path("report").touch()
    assert run_once(*given, "report").ret == pytest.ExitCode.OK
    assert run_once(*given, "report").ret == pytest.ExitCode.OK

    for name in ("SKILL.md", "skill_meta.json"):
        file = Path("skills", "billing", name)
        before = file.read_text("utf-8")
        result = run_once(*given, str(file))

        assert result.ret == pytest.ExitCode.USAGE_ERROR
        problem = f"{file.absolute()}: not such a report: write another name"
        result.stderr.fnmatch_lines([f"ERROR: --upskill-{kind}: {problem}"])
        assert file.read_text("utf-8") == before


def test_two_reports_need_two_files(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill()

    result = run_once("--upskill-models=offline", "--upskill-md=r", "--upskill-html=r", "skills")

    result.stderr.fnmatch_lines(["ERROR: --upskill-*: */r: two reports in one file: write *"])


@pytest.mark.parametrize(
    ("words", "complete"), [('"contains": "37"', True), ('"contians": "37"', False)]
)
def test_a_report_knows_whether_its_run_could_read_every_file(
    run: Run, write_skill: WriteSkill, words: str, complete: bool
) -> None:
    write_skill()
    other = write_skill(name="csv")
    case = '{"cases": [{"id": "a", "input": "What is the budget?", "expected": {%s}}]}'
    (other / "skill_meta.json").write_text(case % words, "utf-8")

    run("--upskill-models=offline", "--upskill-json=r.json", "skills")

    (session,) = read_json(Path("r.json").read_bytes()).sessions
    assert session.complete is complete


def test_a_report_knows_whether_its_run_was_stopped(run: Run, write_skill: WriteSkill) -> None:
    write_skill({"id": "red", "input": "Why?", "expected": {"contains": "unknown word"}})
    write_skill(name="csv")

    run("--upskill-models=offline", "--upskill-json=r.json", "-x", "skills")

    (session,) = read_json(Path("r.json").read_bytes()).sessions
    assert not session.complete


def test_a_report_knows_whether_somebody_called_exit(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill({"id": "one", "input": "Why?", "expected": {"contains": "because"}})
    pytester.makeconftest(
        "import pytest\ndef pytest_runtest_teardown(): pytest.exit('enough', returncode=7)"
    )

    run_once("--upskill-models=offline", "--upskill-json=r.json", "skills")

    (session,) = read_json((pytester.path / "r.json").read_bytes()).sessions
    assert not session.complete
