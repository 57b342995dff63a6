"""What ``pytest-upskill refine`` refuses, most of it before any request."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_upskill.commands.main import main
from pytest_upskill.teacher.files import Drafts
from tests.teaching import BAYS, FIX, HEAD, TRAIN, Depot, case, line


def test_a_skill_that_passes_every_train_case_is_not_refined(depot: Depot) -> None:
    depot.knows = 1.0
    depot.write(text=HEAD + "".join(map(line, BAYS)))

    assert depot.refine() == 1

    assert depot.decision()["reason"].startswith("the skill passes every train case")
    assert depot.teacher_requests == []


def test_cases_that_code_cannot_decide_for_all_students_are_left_out(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    others: dict[str, dict[str, object]] = {
        "prose": {"expected": {"judge": "It is friendly."}},
        "elsewhere": {"expected": {"contains": "a"}, "models": ["opus"]},
        "files": {"expected": {"file_exists": "out.txt"}},
        "query": {"should_trigger": False},
    }
    more = [{"id": name, "input": "Please help."} | each for name, each in others.items()]
    depot.write([*map(case, BAYS), *more])

    assert depot.refine("--dry-run") == 0

    said = capsys.readouterr().err
    assert "left out: prose: has only statements for a judge\n" in said
    assert "left out: elsewhere: " in said
    assert "left out: query: is about triggers, and has no answer\n" in said
    assert "left out: files: has files or needs commands ('file_exists')\n" in said
    assert "codes: 7 train cases, 9 held out\n" in said


def test_without_a_train_case_there_is_nothing_to_choose_by(depot: Depot) -> None:
    depot.write([case(bay) for bay in BAYS if bay not in TRAIN])

    assert depot.refine() == 4

    assert depot.decision()["reason"].startswith("no train case: add cases")


@pytest.mark.parametrize(
    ("student", "reason"),
    [
        ("s=loop:openai:student@URL", "s gives no single answers: name a language model"),
        ("offline", "offline gives no single answers: name a language model"),
    ],
)
def test_a_student_that_gives_no_single_answers_is_refused(
    depot: Depot, student: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = student.replace("URL", depot.loopback.openai_url)

    assert depot.refine(f"--eval-model={named}") == 4

    assert reason in capsys.readouterr().err
    assert depot.loopback.requests == []


def test_too_small_a_hold_out_says_how_many_cases_are_missing_and_requests_nothing(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    depot.write([case(bay) for bay in BAYS[:12]])
    held_out = sum(bay not in TRAIN for bay in BAYS[:12])

    assert depot.refine() == 4

    assert f"only {held_out} of 12 cases are held out" in capsys.readouterr().err
    assert depot.decision()["decision"] == "refused"
    assert depot.loopback.requests == []


def test_the_name_of_a_skill_leads_to_no_other_folder(tmp_path: Path) -> None:
    assert Drafts(tmp_path, "../../evil\n").folder.parent == tmp_path


def test_a_folder_that_cannot_be_written_is_one_line(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    drafts = depot.folder / ".upskill" / "drafts"
    drafts.parent.mkdir()
    drafts.write_text("not a folder", "utf-8")

    assert depot.refine("--steps=1") == 4

    *_, last = filter(None, capsys.readouterr().err.splitlines())
    assert last.startswith(f"ERROR: {drafts}")
    assert last.endswith(": Not a directory")


def test_a_model_without_a_price_needs_a_limit_of_answers(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    depot.teach = lambda _, __: FIX
    assert depot.refine("--max-answers=100", "--steps=1") == 75
    assert "--max-answers: " in depot.decision()["reason"]
    assert 0 < len(depot.loopback.requests) <= 100

    url = "https://models.example/v1"
    arguments = ["refine", str(depot.skill), f"--model=t@{url}", f"--eval-model=s@{url}"]
    assert main(arguments) == 4
    assert "or add --max-answers N" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--runs=0", "--runs=1000", "--steps=-1", "--max-cost=nan"])
def test_a_number_out_of_range_is_refused(
    depot: Depot, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert depot.refine(option) == 4

    assert f"argument {option.partition('=')[0]}: " in capsys.readouterr().err


def test_a_dry_run_prints_plan_and_power_and_requests_nothing(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert depot.refine("--dry-run") == 0

    said = capsys.readouterr().err
    assert "at most 183 answers" in said
    assert "look 1 at this hold-out, level 0.025" in said
    assert depot.loopback.requests == []
    assert not (depot.folder / ".upskill" / "drafts").exists()
