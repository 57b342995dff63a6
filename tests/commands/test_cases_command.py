"""``pytest-upskill cases``: proposals are validated, screened and merged into the case file."""

from __future__ import annotations

import json

import pytest

from tests.loopback import Received, Reply
from tests.teaching import SKILL, Depot, case, code, facts, proposed

HIDDEN = range(30, 36)


def propose(depot: Depot, *proposals: object) -> None:
    """Make a teacher that proposes cases once, and answers them by the sources that it is given."""
    answer = depot.loopback.answer

    def teach(received: Received) -> Reply | str:
        if received.body["model"] != "teacher":
            return answer(received)
        depot.teacher_requests.append(received)
        if received.user.startswith("You write requests"):
            return json.dumps({"queries": []})
        if "Propose" not in received.user:
            bay = int(received.user.split("bay ")[1].split()[0].strip(",?"))
            return code(bay) if f"is {code(bay)}" in received.user else "No idea."
        first = sum("Propose" in each.user for each in depot.teacher_requests) == 1
        return json.dumps({"proposals": proposals if first else []})

    depot.loopback.answer = teach


@pytest.fixture
def source(depot: Depot) -> str:
    return depot.source(HIDDEN)


def test_kept_cases_are_merged_with_provenance_and_drops_have_reasons(
    depot: Depot, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    depot.guesses = 0.0
    propose(
        depot,
        proposed(30),
        proposed(31, quote="", id=""),
        proposed(32, expected={"contains": "QX"}),
        # The teacher itself, given the source, does not find this.
        proposed(40, quote=""),
        # Every student knows it: it is in the question.
        proposed(33, input="Say hello for bay 33.", expected={"regex": "It is|code"}),
        proposed(30),
        proposed(34, wrong=[]),
        "Which code has bay 35?",
    )
    before = (depot.skill / "skill_meta.json").read_text("utf-8")

    assert depot.run("cases", str(depot.skill), "--from", source, "--yes", "--apply") == 0

    decision = depot.decision()
    assert decision["decision"] == "accepted"
    assert decision["kept"] == ["bay-30", "tell-me-the-code-of-bay-31-in-the-depot-04053c"]
    assert "accepts a wrong answer" in decision["dropped"]["bay-32"]
    assert "the teacher itself passes only 0 of 2" in decision["dropped"]["bay-40"]
    assert "has the id of another case" in decision["dropped"]["bay-30+"]
    assert decision["dropped"]["bay-34"].startswith("malformed: wrong: ")
    assert decision["dropped"]["proposal-8"].startswith("malformed: ")
    assert "kept 2 of 8" in capsys.readouterr().err
    after = (depot.skill / "skill_meta.json").read_text("utf-8")
    assert after.startswith(before.rstrip().removesuffix("}").rstrip().removesuffix("]").rstrip())
    added = json.loads(after)["cases"][-2:]
    assert added[0]["provenance"] == {
        "teacher": f"openai:teacher@{depot.loopback.url.removeprefix('http://')}",
        "source": "codes.md",
        "quote": f"The code of bay 30 is {code(30)}",
        "screened": [f"openai:student@{depot.loopback.url.removeprefix('http://')}"],
    }
    assert added[1]["provenance"]["unsourced"]


def test_a_case_that_every_student_passes_without_the_skill_is_dropped(
    depot: Depot, source: str
) -> None:
    depot.guesses = 1.0
    propose(depot, proposed(30))

    assert depot.run("cases", str(depot.skill), "--from", source, "--yes") == 1

    reason = depot.decision()["dropped"]["bay-30"]
    assert reason == "every student passes every time without the skill"
    assert not [each for each in depot.loopback.requests if "<skill" in each.system]


def test_cases_beyond_the_count_are_dropped(depot: Depot, source: str) -> None:
    (depot.skill / "skill_meta.json").unlink()
    depot.guesses = 0.0
    propose(depot, proposed(30), proposed(31))

    assert depot.run("cases", str(depot.skill), "--from", source, "--yes", "--count=1") == 0

    assert depot.decision()["dropped"] == {"bay-31": "not needed: --count 1 is reached"}


def test_statements_of_the_skills_own_cases_become_cases_for_code(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    harden = ("cases", str(depot.skill), "--harden", "--yes", "--apply")
    assert depot.run(*harden) == 4
    assert "--harden: no case of" in capsys.readouterr().err

    statement = f"The code of bay 30 is {code(30)}."
    evals = [{"id": 1, "prompt": "Tell me about bay 30.", "expectations": [statement]}]
    (depot.skill / "evals").mkdir()
    (depot.skill / "evals/evals.json").write_text(json.dumps({"evals": evals}), "utf-8")
    depot.guesses = 0.0
    propose(depot, proposed(30))

    assert depot.run(*harden) == 0

    assert depot.decision()["kept"] == ["bay-30"]
    (added,) = json.loads((depot.skill / "skill_meta.json").read_text("utf-8"))["cases"][-1:]
    assert added["expected"] == {"contains": code(30)}
    assert added["provenance"]["source"] == "evals.json"


def test_sources_are_redacted_and_sent_only_with_consent(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    file = depot.folder / "notes.md"
    file.write_text(f"{facts(HIDDEN)}\nANTHROPIC_API_KEY=sk-ant-api03-{'a' * 40}\n", "utf-8")
    propose(depot, proposed(30))
    arguments = ("cases", str(depot.skill), "--from", str(file))

    assert depot.run(*arguments) == 4
    said = capsys.readouterr().err
    assert "notes.md: text" in said
    assert "1 key removed" in said
    assert "add --yes to send them without a terminal" in said
    assert depot.loopback.requests == []

    assert depot.run(*arguments, "--yes") == 0
    sent = json.dumps([each.body for each in depot.loopback.requests])
    assert "sk-ant" not in sent
    assert "[key removed]" in sent


def test_a_skill_without_cases_is_its_own_source_and_gets_a_case_file(depot: Depot) -> None:
    (depot.skill / "skill_meta.json").unlink()
    depot.write([case(0)], SKILL + facts(HIDDEN))
    (depot.skill / "skill_meta.json").unlink()
    depot.guesses = 0.0
    propose(depot, proposed(30))

    assert depot.run("cases", str(depot.skill), "--apply") == 0

    (written,) = json.loads((depot.skill / "skill_meta.json").read_text("utf-8"))["cases"]
    assert written["id"] == "bay-30"
    assert written["provenance"]["source"] == "SKILL.md"


def test_an_interrupted_command_goes_on_from_what_is_recorded(depot: Depot, source: str) -> None:
    depot.guesses = 0.0
    propose(depot, proposed(30))
    arguments = ("cases", str(depot.skill), "--from", source, "--yes")

    assert depot.run(*arguments, "--max-answers=3") == 75
    assert depot.decision()["decision"] == "stopped"
    assert depot.run(*arguments) == 0

    first = [each for each in depot.teacher_requests if "Propose" in each.user]
    assert len(first) == 2, "the first round, and one in which the teacher proposes no more"
