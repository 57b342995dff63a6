"""Marks at the lines of case files in a pull request on GitHub."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git
from tests.loopback import Loopback
from tests.trials.choosing import choosing

HOSTILE = "100%\r\n::stop-commands::x"


def marks_of(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("::")]


@pytest.fixture(autouse=True)
def _on_github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


def test_what_failed_is_marked_at_the_line_of_its_case(run: Run, write_skill: WriteSkill) -> None:
    write_skill({"id": "size", "input": "How long is it?", "expected": {"contains": HOSTILE}})

    result = run("--upskill-models=offline", "skills")

    (line,) = marks_of(result)
    place, _, message = line.removeprefix("::error ").partition("::")
    file, number, title = (part.partition("=")[2] for part in place.split(","))
    assert (file, title) == (
        "skills/billing/skill_meta.json",
        "skills/billing/skill_meta.json%3A%3Asize[offline-with_skill]",
    )
    assert '"size"' in Path(file).read_text("utf-8").splitlines()[int(number) - 1]
    assert message.startswith("contains '100%25")


def test_a_file_that_cannot_be_read_is_marked(run_once: Run, write_skill: WriteSkill) -> None:
    (write_skill() / "skill_meta.json").write_text('{\n  "cases": 1\n}', "utf-8")

    (line,) = marks_of(run_once("--upskill-models=offline", "skills"))

    assert line.startswith("::error file=skills/billing/skill_meta.json,line=2,")


def test_a_skill_that_cannot_be_read_is_marked_itself(
    run_once: Run, write_skill: WriteSkill
) -> None:
    (write_skill() / "SKILL.md").write_text("---\nname: billing\n---\nText.\n", "utf-8")

    (line,) = marks_of(run_once("--upskill-models=offline", "skills"))

    assert line.startswith("::error file=skills/billing/SKILL.md,line=1,")


def test_a_warning_about_a_skill_is_marked(run_once: Run, write_skill: WriteSkill) -> None:
    file = write_skill() / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace("name: billing", "name: Billing Stuff"))

    (line,) = marks_of(run_once("-Wdefault", "--upskill-models=offline", "skills"))

    assert line.startswith("::warning file=skills/billing/SKILL.md,line=2,")
    assert "name: must be lower-case letters" in line


def test_a_placeholder_is_marked_in_its_case_file(run_once: Run, write_skill: WriteSkill) -> None:
    case = {"id": "a", "input": "Replace this with a question", "expected": {"contains": "x"}}
    write_skill(case)

    for line in marks_of(run_once("--upskill-models=offline", "skills")):
        assert line.startswith("::error file=skills/billing/skill_meta.json,line=1,")


@pytest.mark.needs("git")
def test_a_failed_case_of_an_unchanged_skill_says_that_it_is_unchanged(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill({"id": "size", "input": "How long?", "expected": {"contains": "zebra"}})
    commit_all(pytester.path)

    result = run_once("--upskill-models=offline", "--upskill-compare=main", "skills")

    (line,) = marks_of(result)
    assert "; its skill: unchanged since main (" in line


def test_paths_are_those_of_the_repository(
    run_once: Run, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_skill({"id": "size", "input": "Why?", "expected": {"contains": "zebra"}})
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder.parents[2]))

    (line,) = marks_of(run_once("--upskill-models=offline", "skills"))

    name = folder.parents[1].name
    assert line.startswith(f"::error file={name}/skills/billing/skill_meta.json,")


def test_ten_errors_are_marked_and_none_of_other_tests(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    cases = [
        {"id": str(n), "input": f"Why {n}?", "expected": {"contains": "zebra"}} for n in range(12)
    ]
    write_skill(*cases)
    pytester.makepyfile("def test_other():\n    assert False")

    result = run_once("--upskill-models=offline", ".")

    assert len(marks_of(result)) == 10
    assert "test_other" not in "".join(marks_of(result))


def test_elsewhere_nothing_is_marked(
    run_once: Run, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    write_skill({"id": "size", "input": "Why?", "expected": {"contains": "zebra"}})

    assert not marks_of(run_once("--upskill-models=offline", "skills"))


def test_a_failed_gate_is_marked_in_the_skill_with_what_to_do(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill({"id": "size", "input": "Why?", "expected": {"not_contains": "zebra"}})

    result = run_once("--upskill-models=offline", "--upskill-min-lift=0.5", "skills")

    (line,) = marks_of(result)
    assert line.startswith("::error file=skills/billing/SKILL.md,line=1,")
    assert "lift is under +50 points" in line
    assert "%0Anext: " in line


def test_what_was_not_measured_is_marked(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill({"id": "size", "input": "Why?", "expected": {"judge": "It is long."}})

    result = run_once("--upskill-models=offline", "skills")

    assert result.ret == 75
    assert any(line.startswith("::error title=pytest-upskill::") for line in marks_of(result))


def test_a_run_that_is_refused_is_marked(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill()

    result = run_once("--upskill-models=offline", "--upskill-fail-on=hurt", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = marks_of(result)
    assert line.startswith("::error title=pytest-upskill::--upskill-fail-on: must be 'hurts', ")


def test_a_lost_query_is_marked_with_what_to_do(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill({"id": "q", "input": "Facts?", "should_trigger": True})
    loopback.answer = choosing({})

    result = run_once("--upskill-models", model, "skills")

    (line,) = marks_of(result)
    assert line.startswith("::error file=skills/billing/skill_meta.json,line=1,")
    assert "%0Anext: say in each description when to use the skill" in line


@pytest.mark.needs("git")
def test_removed_cases_are_marked(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    cases = [{"id": name, "input": f"{name}?", "expected": {"not_contains": "q7"}} for name in "ab"]
    query = {"id": "q", "input": "Facts?", "should_trigger": True}
    write_skill(*cases, query)
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    write_skill(cases[0], query, body="Other facts.\n")

    result = run_once("--upskill-models=offline", "--upskill-compare=main", "skills")

    (line,) = marks_of(result)
    assert line.startswith("::warning file=skills/billing/skill_meta.json,line=1,")
    assert line.endswith(
        "removed: b: a worse skill may look better, so restore them or review each"
    )
