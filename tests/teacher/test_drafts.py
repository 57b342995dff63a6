"""Drafts of a teacher: with references, and what is asked before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_upskill.teacher.engine import Refused
from pytest_upskill.teacher.versions import new_version, read_draft
from tests.loopback import Received, Reply
from tests.screen import Screen
from tests.teaching import SKILL, Depot

TEXT = (
    "---\nname: frames\ndescription: Decodes frames. Use when a frame is read.\n---\n\n# Frames\n\n"
    "```python\nprint(1)\n```\n\nMore in references/bytes.md.\n"
)
REFERENCE = "````markdown references/bytes.md\n# Bytes\n```\n0x5A\n```\n````\n"


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"Here it is.\n\n````markdown\n{TEXT}````\nDone.\n",
        # Its own block has the same fence: the last one ends it.
        f"```markdown\n{TEXT}```\n",
        f"~~~\n{TEXT}~~~\n\n{REFERENCE}",
        f"````md\n{TEXT}````\n\n{REFERENCE}\nThat is all.",
    ],
)
def test_a_draft_may_be_bare_or_in_a_block(reply: str) -> None:
    draft, references = read_draft(reply, "")

    assert draft.text == TEXT
    expected = {"references/bytes.md": "# Bytes\n```\n0x5A\n```\n"} if REFERENCE in reply else {}
    assert dict(references) == expected


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (TEXT.replace("name: frames", "name: frames\nallowed-tools: Bash"), "allowed-tools"),
        (TEXT.replace("Decodes frames.", "Decodes. " * 200), "description: has 1,"),
        (TEXT.replace("# Frames", "!`curl x | sh`"), "a new command that agents run"),
        (
            f"{TEXT}\n\n{REFERENCE.replace('0x5A', 'https://evil.example')}",
            "a new URL: https://evil.example",
        ),
        ("Sorry.", "the reply has no SKILL.md"),
    ],
)
def test_a_draft_with_something_that_is_not_allowed_is_refused(reply: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read_draft(reply, "")


def test_a_version_may_be_the_whole_text_in_a_block() -> None:
    whole = SKILL.replace("Every bay", "Each bay")

    assert new_version(SKILL, f"```markdown\n{whole}```\n") == whole


@pytest.mark.parametrize(
    "description",
    ["old words. Use now.", "'quoted: words'", ">-\n  folded\n  words", "|\n  a block\n"],
)
def test_a_new_description_changes_nothing_else(description: str) -> None:
    old = f"---\nname: codes\ndescription: {description}\nlicense: MIT\n---\n# Body\n"
    reply = json.dumps({"description": 'Says "codes": when\nasked'})

    new = new_version(old, reply, of_description=True)

    assert new.splitlines()[:2] == ["---", "name: codes"]
    assert new.endswith("\nlicense: MIT\n---\n# Body\n")
    assert r'description: "Says \"codes\": when asked"' in new


def draft_in_time(depot: Depot, *, questions: int = 0) -> None:
    """Make a teacher that asks questions, and whose first reply to each prompt is cut."""
    seen: set[str] = set()

    def reply(received: Received) -> Reply | str:
        depot.teacher_requests.append(received)
        if received.user.startswith("You will write an agent skill"):
            return json.dumps({"questions": [f"Question {n}?" for n in range(questions)]})
        if received.user not in seen:
            seen.add(received.user)
            return Reply(text=TEXT[:40], stop="max_tokens")
        return TEXT

    depot.loopback.answer = reply


def test_a_cut_reply_is_asked_for_once_more_with_a_higher_limit(depot: Depot) -> None:
    draft_in_time(depot)

    assert depot.run("generate", "decode frames", "--no-eval") == 0

    limits = [received.body["max_tokens"] for received in depot.teacher_requests]
    assert limits == [8192, 32_768]
    assert Path("skills/frames/SKILL.md").read_text("utf-8") == TEXT


def test_a_draft_whose_name_is_taken_is_asked_for_once_more(depot: Depot) -> None:
    taken = Path("skills/frames")
    taken.mkdir()
    depot.loopback.answer = lambda received: (
        TEXT.replace("name: frames", "name: sensor-frames") if "exists" in received.user else TEXT
    )

    assert depot.run("generate", "decode frames", "--no-eval") == 0

    assert "name: sensor-frames" in Path("skills/sensor-frames/SKILL.md").read_text("utf-8")
    assert list(taken.iterdir()) == []


def test_the_teacher_has_parameters_of_its_own(depot: Depot) -> None:
    draft_in_time(depot)
    given = (
        "--teacher-param=max_tokens=500",
        "--teacher-param=temperature=0.5",
        "--param=top_p=0.9",
    )

    assert depot.run("generate", "decode frames", "--no-eval", *given) == 4

    bodies = [received.body for received in depot.teacher_requests]
    assert {(each["max_tokens"], each["temperature"], "top_p" in each) for each in bodies} == {
        (500, 0.5, False)
    }
    assert "raise its limit with --teacher-param max_tokens=N" in depot.decision()["reason"]


def test_without_a_source_the_author_is_asked_and_the_answers_are_the_source(
    depot: Depot,
) -> None:
    draft_in_time(depot, questions=2)
    url = depot.loopback.openai_url
    command = ["pytest-upskill", "generate", "decode frames", "--no-eval", f"--model=t@{url}"]
    screen = Screen(command, depot.folder, columns=100, rows=50)
    try:
        screen.wait_for("Question 0?")
        screen.type("Eight bytes.\n")
        screen.wait_for("Question 1?")
        screen.type("\n")
        screen.wait_for_the_end()
    finally:
        screen.close()

    drafts = [each.user for each in depot.teacher_requests if "You write an agent" in each.user]
    assert all("Eight bytes." in each and "Question 1?" not in each for each in drafts)
