"""``pytest-upskill refine``: a version is chosen on train cases and proved on the hold-out."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal

import pytest

from tests.forked import Forked
from tests.loopback import Received, Reply
from tests.teaching import (
    BAYS,
    FIX,
    LACKING,
    SKILL,
    TRAIN,
    Depot,
    adding,
    case,
    code,
    line,
    question,
)

pytestmark = pytest.mark.slow

VERSIONS = ["without the skill", "with the old version", "with the new version"]

STUDENTS = {"s": "student", "o": "other"}
"""Names of models by their labels."""


def test_a_true_fix_is_accepted_and_written_with_apply_which_then_asks_for_nothing(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    depot.teach = lambda _, __: FIX

    assert depot.refine() == 0
    decision = depot.decision()
    assert decision["decision"] == "accepted"
    assert decision["p"] <= decision["alpha"] == 0.025
    assert decision["figures"]["s"]["lift"] > 0.3
    assert depot.text == SKILL
    next_step = f"next: 'pytest-upskill refine {depot.skill} "
    assert next_step in capsys.readouterr().err

    requests = len(depot.loopback.requests)
    assert depot.refine("--apply") == 0
    assert "\nlook 1 at this hold-out" in capsys.readouterr().err
    assert depot.decision()["applied"]
    assert line(0) in depot.text
    cases = json.loads((depot.skill / "skill_meta.json").read_text("utf-8"))["cases"]
    assert [each["id"] for each in cases if each.get("train")] == [f"bay-{bay}" for bay in TRAIN]
    assert len(depot.loopback.requests) == requests


def test_a_memorising_teacher_passes_the_train_cases_and_not_the_hold_out(depot: Depot) -> None:
    depot.teach = lambda _, __: adding("".join(line(bay) for bay in LACKING if bay in TRAIN))

    assert depot.refine("--apply") == 1

    decision = depot.decision()
    assert decision["decision"] == "not shown"
    assert decision["look"] == 1
    first = decision["candidates"][0]
    assert first["passes"] > 0.8 * first["runs"]
    assert decision["p"] > 0.025
    assert depot.text == SKILL


def test_a_version_that_helps_one_student_and_hurts_another_is_not_accepted(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    depot.teach = lambda _, __: FIX
    answer, url = depot.loopback.answer, depot.loopback.openai_url

    def with_another(received: Received) -> Reply | str:
        long = line(LACKING[0]) in received.system
        if received.body["model"] == "other" and long:
            return depot.answer_at(0.3, received)
        return answer(received)

    depot.loopback.answer = with_another
    students = [f"--eval-model={label}=openai:{name}@{url}" for label, name in STUDENTS.items()]
    arguments = ("--apply", "--steps=1", "--max-answers=4000", *students)

    assert depot.refine(*arguments) == 1

    decision, said = depot.decision(), capsys.readouterr().err
    assert decision["decision"] == "not shown"
    assert decision["reason"].startswith("worse for o: p ")
    assert decision["p"] <= decision["alpha"]
    assert decision["figures"]["s"]["lift"] > 0.3
    assert decision["figures"]["o"]["lift"] < -0.1
    for student in STUDENTS:
        assert f"{student}, held-out cases, fresh runs:\n  old version  " in said
    assert depot.text == SKILL

    requests = len(depot.loopback.requests)
    assert depot.refine(*arguments) == 1
    assert len(depot.loopback.requests) == requests
    assert depot.decision() == decision | {"asked": 0, "unpriced": 0, "cost_usd": 0}


def shown_on_page(depot: Depot, bay: int) -> str:
    page = next((depot.folder / ".upskill" / "drafts").glob("*/page.html")).read_text("utf-8")
    (shown,) = re.findall(rf"<b><bdi>bay-{bay}</bdi>.*?</details>", page, re.DOTALL)
    return str(shown)


def test_the_page_shows_each_answer_without_the_skill_and_with_both_versions(depot: Depot) -> None:
    depot.teach = lambda _, __: FIX

    depot.refine("--steps=1")

    for bay in BAYS:
        assert re.findall(r"<h4>([^,]+),", shown_on_page(depot, bay)) == VERSIONS
    page = next((depot.folder / ".upskill" / "drafts").glob("*/page.html")).read_text("utf-8")
    added = f"+{line(0)[:-1]}    <- a check of bay-0 looks for this".replace("<", "&lt;")
    assert f'\n<ins class="good">{added}</ins>\n' in page


def test_what_hinges_on_answers_that_were_cut_is_not_accepted(depot: Depot) -> None:
    depot.teach = lambda _, __: FIX
    answer = depot.loopback.answer

    def cut_misses(received: Received) -> Reply | str:
        text = answer(received)
        return Reply(text=str(text), stop="max_tokens") if "do not know" in str(text) else text

    depot.loopback.answer = cut_misses

    assert depot.refine("--apply", "--steps=1") == 1

    reason = depot.decision()["reason"]
    assert reason.startswith("better only if no cut answer of the old version would have passed: p")
    assert reason.endswith(" cut at the output limit: --param max_tokens=N raises it")
    assert depot.text == SKILL


def test_the_end_in_a_terminal_is_at_most_ten_lines(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    depot.teach, depot.knows = (lambda _, __: FIX), 0.8
    url = depot.loopback.openai_url
    students = [f"--eval-model=s{number}=openai:s{number}@{url}" for number in range(4)]

    depot.refine("--steps=1", "--max-answers=9000", *students)

    lines = capsys.readouterr().err.splitlines()
    end = lines[next(i for i, line in enumerate(lines) if line.startswith("accepted: ")) :]
    assert len(end) <= 10
    assert [line.partition(":")[0] for line in end][-4:] == [
        "still failing",
        "cost",
        "next",
        "page",
    ]
    assert end[-3].startswith("cost: n/a for ")


def test_a_version_that_was_tried_is_not_tried_again_and_one_that_is_no_better_not_proved(
    depot: Depot,
) -> None:
    depot.knows, depot.guesses = 1.0, 0.0
    depot.teach = lambda _, __: adding("Answer with care.\n")

    assert depot.refine("--steps=2") == 1

    first, second = depot.decision()["candidates"]
    assert first["passes"] < first["runs"]
    assert second["refused"] == "the reply reproduces an earlier version"
    assert depot.decision()["reason"].startswith("no candidate passed more train cases")
    assert depot.decision()["look"] is None


def test_a_teacher_that_writes_questions_and_answers_down_is_refused(depot: Depot) -> None:
    answers = "".join(f"{question(bay)} {code(bay)}\n" for bay in TRAIN[:3])
    depot.teach = lambda _, __: adding(answers)

    assert depot.refine("--apply") == 1

    refusals = {each["refused"] for each in depot.decision()["candidates"]}
    assert refusals == {"copies the question of a case"}
    assert depot.decision()["look"] is None
    assert depot.text == SKILL


def test_the_teacher_sees_no_check_and_nothing_that_is_held_out(depot: Depot) -> None:
    depot.guesses = 0.0
    depot.teach = lambda _, step: adding(f"Variant {step}.\n") if step > 1 else "not JSON"

    depot.refine()

    held_out = [bay for bay in BAYS if bay not in TRAIN]
    for received in depot.teacher_requests:
        said = received.system + received.user
        assert "contains" not in said
        assert not [bay for bay in held_out if question(bay) in said]
        assert not [bay for bay in LACKING if code(bay) in said]
        assert re.search(r"<(question-\w{16})>\n.*\n</\1>", said)
    assert "the reply has no JSON" in depot.teacher_requests[1].user


MEMORISED = "".join(line(bay) for bay in LACKING if bay in TRAIN)
"""Helps the train cases only."""


def test_deleted_recordings_renamed_cases_and_other_blanks_do_not_give_a_second_first_look(
    depot: Depot,
) -> None:
    depot.teach = lambda _, __: adding(MEMORISED)
    depot.refine()
    assert depot.decision()["look"] == 1

    # Repeated with the same answers, it is the same look.
    depot.refine()
    assert depot.decision()["look"] == 1

    shutil.rmtree(depot.folder / ".upskill" / "cache")
    depot.refine()
    assert depot.decision()["look"] == 2

    for each in (cases := [case(bay) for bay in BAYS]):
        each |= {"id": f"new-{each['id']}", "input": f" {each['input']}\n\n"}
    depot.write(cases)
    depot.refine()
    assert depot.decision()["look"] == 3
    assert depot.decision()["alpha"] == pytest.approx(0.05 / 12)


def test_a_second_candidate_is_a_second_look_even_without_the_ledger(depot: Depot) -> None:
    depot.teach = lambda _, __: adding(MEMORISED)
    depot.refine()

    shutil.rmtree(depot.folder / ".upskill" / "looks")
    depot.teacher = "teacher-2"
    depot.teach = lambda _, __: adding(f"Codes:\n{MEMORISED}")
    depot.refine()
    decision = depot.decision()
    assert decision["look"] == 2
    assert decision["alpha"] == pytest.approx(0.05 / 6)


def test_a_file_that_changes_meanwhile_is_not_overwritten(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = SKILL + "A line of the author.\n"

    def teach(_: Received, __: int) -> str:
        (depot.skill / "SKILL.md").write_text(changed, "utf-8")
        return FIX

    depot.teach = teach
    assert depot.refine("--apply") == 4
    assert "has changed in the meantime: start again" in capsys.readouterr().err
    assert depot.text == changed


@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 2)]
)
def test_a_killed_or_interrupted_session_goes_on_where_it_was(
    depot: Depot, sent: signal.Signals, status: int
) -> None:
    depot.teach = lambda _, __: FIX
    url = depot.loopback.openai_url
    models = [f"--model=t=openai:teacher@{url}", f"--eval-model=s=openai:student@{url}"]
    limits = ["--runs=3", "--max-answers=900"]
    command = ["pytest-upskill", "refine", str(depot.skill), *models, *limits]
    answer = depot.loopback.answer

    def fatal(received: Received) -> Reply | str:
        # In the middle of the look: 16 runs, 21 of each of three versions and 4 edits come first.
        if len(depot.loopback.requests) == 120:
            os.kill(process.pid, sent)
        return answer(received)

    depot.loopback.answer = fatal
    process = Forked(command, depot.folder, os.environ, [0, 1, 2])
    assert process.wait(60) == status
    (look,) = (depot.folder / ".upskill/looks").iterdir()
    assert json.loads(look.read_text("utf-8"))["decision"] == "open"

    assert depot.refine() == 0

    assert depot.decision()["look"] == 1
    assert json.loads(look.read_text("utf-8"))["decision"] == "accepted"
    # All that are needed, and again only what was in flight.
    assert depot.decision()["asked"] < len(depot.loopback.requests) <= 16 + 21 * 3 + 4 + 54 + 30
