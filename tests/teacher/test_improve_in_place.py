"""A skill is improved in place: by refine, by refine with a source, and by generate."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.loopback import Received, Reply
from tests.teaching import (
    BAYS,
    FIX,
    LACKING,
    TRAIN,
    Depot,
    adding,
    case,
    code,
    line,
    proposed,
)

pytestmark = pytest.mark.slow

TRACE = json.dumps({"type": "user", "message": {"content": "Bay 0 has code QX00Z, remember."}})


@pytest.fixture
def other_files(depot: Depot) -> dict[str, bytes]:
    """Files of the skill that no command may change, and their content."""
    files = {
        "references/bays.md": b"# Bays\r\n",
        "scripts/read.py": b"print(1)\n",
        "assets/a.bin": b"\0\xff",
        "evals/evals.json": b'{"skill_name": "codes", "evals": []}',
    }
    for name, content in files.items():
        (depot.skill / name).parent.mkdir(parents=True, exist_ok=True)
        (depot.skill / name).write_bytes(content)
    return files


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (["refine", "skills/codes"], ""),
        (["refine", "skills/codes", "--from", "trace.json", "--yes"], "Bay 0 has code QX00Z"),
        (["generate", "list all bays", "--from", "skills/codes/"], "list all bays"),
        (["generate", "list all bays", "--from", "skills/codes/SKILL.md"], "list all bays"),
        (["generate", "—-from", "skills/codes"], ""),
    ],
)
def test_a_skill_is_improved_by_its_own_cases_and_keeps_its_other_files(
    depot: Depot,
    other_files: dict[str, bytes],
    command: list[str],
    wanted: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("trace.json").write_text(TRACE, "utf-8")
    depot.teach = lambda _, __: FIX

    assert depot.run(*command, "--apply", "--steps=1") == 0

    assert line(0) in depot.text
    assert {name: (depot.skill / name).read_bytes() for name in other_files} == other_files
    (asked,) = depot.teacher_requests
    assert wanted in asked.user
    said = capsys.readouterr().err
    assert f"+{line(0).strip()}" in said
    assert "old version" in said
    decision = depot.decision()
    assert (decision["command"], decision["look"]) == ("refine", 1)
    assert set(decision["train"]) == {f"bay-{bay}" for bay in TRAIN}


def test_without_a_yes_nothing_changes(depot: Depot) -> None:
    before = depot.text
    depot.teach = lambda _, __: FIX

    assert depot.run("generate", "list all bays", "--from", "skills/codes", "--steps=1") == 0

    assert depot.decision()["decision"] == "accepted"
    assert depot.text == before


def test_another_output_folder_gets_a_changed_copy(
    depot: Depot, other_files: dict[str, bytes]
) -> None:
    before, new = depot.text, Path("skills/better")
    depot.teach = lambda _, __: FIX

    arguments = ("generate", "list all", "--from", "skills/codes", "-o", str(new), "--steps=1")
    assert depot.run(*arguments) == 0

    assert depot.text == before
    assert line(0) in (new / "SKILL.md").read_text("utf-8")
    assert {name: (new / name).read_bytes() for name in other_files} == other_files


def test_a_skill_with_few_cases_gets_more_from_the_teacher(depot: Depot) -> None:
    depot.guesses = 0.0
    depot.write([case(bay) for bay in BAYS[:3]])
    answer = depot.loopback.answer

    def reply(received: Received) -> Reply | str:
        if received.body["model"] != "teacher":
            return answer(received)
        depot.teacher_requests.append(received)
        if received.user.startswith("You write test cases"):
            return json.dumps({"proposals": [proposed(bay, quote="") for bay in BAYS]})
        if received.user.startswith("You improve"):
            return FIX
        bay = int(received.user.split("bay ")[1].split()[0].strip(",?"))
        return code(bay)

    depot.loopback.answer = reply

    assert depot.run("generate", "list all", "--from", "skills/codes", "--apply") == 0

    cases = json.loads((depot.skill / "skill_meta.json").read_text("utf-8"))["cases"]
    assert [each["id"] for each in cases[:3]] == [f"bay-{bay}" for bay in BAYS[:3]]
    assert len(cases) > 12
    assert line(0) in depot.text
    assert depot.run("refine", "skills/codes", "--dry-run") == 0


def test_two_skills_at_once_are_refused(depot: Depot, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(depot.skill, depot.skill.parent / "other")

    assert depot.run("generate", "x", "--from=skills/codes", "--from=skills/other") == 4

    assert "are both skills: name one" in capsys.readouterr().err


def test_the_refiner_sees_what_must_stay_and_what_the_author_wrote(depot: Depot) -> None:
    depot.teach = lambda _, step: adding(f"Variant {step}.\n")
    depot.refine("--steps=1")
    (page,) = (depot.folder / ".upskill" / "drafts").glob("*/page.html")
    comments = page.parent / "comments.md"
    form = comments.read_text("utf-8")
    assert all(f"## bay-{bay}\n" in form for bay in TRAIN)
    assert not any(f"## bay-{bay}\n" in form for bay in BAYS if bay not in TRAIN)
    comments.write_text(form.replace("## The whole skill\n", "## The whole skill\n\nBe brief.\n"))

    depot.refine("--steps=1")

    first, second = depot.teacher_requests
    assert "was answered rightly" in first.user
    assert "was answered wrongly" in first.user
    assert "Be brief." not in first.user
    assert "Be brief." in second.user


def test_growth_must_pay_for_itself(depot: Depot) -> None:
    padding = "Bays are numbered from the gate to the quay and back, as they always were.\n" * 230
    depot.teach = lambda _, __: adding("".join(map(line, LACKING)) + padding)

    assert depot.refine("--steps=1") == 1

    decision = depot.decision()
    assert decision["p"] < decision["alpha"]
    assert decision["reason"].startswith("better, but too long for it")
    assert decision["growth"] > 4000
