"""Skills and cases are looked at without a model, and their weight is told after a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cases.test_findings import case
from tests.conftest import FACT, QUESTION, Run, WriteSkill

LINT = ("--upskill-lint", "skills")


def findings(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if re.match(r"skills/\S+:\d+:", line)]


def test_no_model_is_asked_though_one_is_chosen(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill()

    result = run_once(*LINT, "--upskill-models", "haiku", "-v")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["skills/billing/skill_meta.json::lint PASSED*"])


def test_a_spec_violation_is_reported_with_its_place(
    run_once: Run, write_skill: WriteSkill
) -> None:
    folder = write_skill()
    text = (folder / "SKILL.md").read_text("utf-8")
    (folder / "SKILL.md").write_text(text.replace("name: billing", "name: Billing"), "utf-8")

    result = run_once(*LINT)

    (finding,) = findings(result)
    assert finding.startswith("skills/billing/SKILL.md:2:7: name: must be lower-case")


def test_a_skill_md_is_reported_once_for_all_case_files_of_the_skill(
    run_once: Run, write_skill: WriteSkill
) -> None:
    folder = write_skill(body=f"{FACT}\n[more](big.md)")
    (folder / "big.md").write_text("a " * 70_000, "utf-8")
    text = (folder / "SKILL.md").read_text("utf-8")
    (folder / "SKILL.md").write_text(text.replace("description", "owner: me\ndescription"), "utf-8")
    (folder / "evals").mkdir()
    entry = {"prompt": "What is the budget?", "assertions": ["Says 37."]}
    (folder / "evals/evals.json").write_text(json.dumps([entry]), "utf-8")

    result = run_once(*LINT, "-W", "default")

    result.assert_outcomes(failed=1, passed=1, warnings=1)
    for what in ("left out of the context: 'big.md'", "owner: unknown key"):
        assert sum(what in line for line in result.outlines) == 1


def test_a_skill_without_cases_is_looked_at_too_and_is_a_warning(
    run: Run, write_skill: WriteSkill
) -> None:
    (write_skill() / "skill_meta.json").unlink()

    result = run(*LINT, "-W", "default")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        ["*skills/billing/SKILL.md:1: PytestWarning: no cases: write them into *"]
    )


def test_two_skills_of_one_name_fail_only_where_one_has_cases(
    run: Run, write_skill: WriteSkill
) -> None:
    for folder in (write_skill(), write_skill(name="other")):
        (folder / "SKILL.md").write_text("---\nname: billing\ndescription: When asked.\n---\n")
        (folder / "skill_meta.json").unlink()

    assert run(*LINT, "-W", "default").ret == pytest.ExitCode.OK

    write_skill(name="other")
    (folder / "SKILL.md").write_text("---\nname: billing\ndescription: When asked.\n---\n")
    result = run(*LINT, "-W", "default")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["skills/other/SKILL.md:1: name: another skill beside it is *"])


def test_what_changes_no_measurement_is_a_hint_that_never_fails(
    run_once: Run, write_skill: WriteSkill
) -> None:
    folder = write_skill(case(contains=["37", "billing"]))
    text = (folder / "SKILL.md").read_text("utf-8")
    keys = "---\nowner: me\nmetadata: 1\n"
    (folder / "SKILL.md").write_text(text.replace("---\n", keys, 1), "utf-8")
    (folder / "evals.json").write_text(
        json.dumps([{"prompt": "Why?", "expectations": ["x"], "must_pass": 2}]), "utf-8"
    )

    result = run_once(*LINT, "-W", "default")

    assert result.ret == pytest.ExitCode.OK
    for hint in (
        "*SKILL.md:2:1: owner: unknown key*",
        "*SKILL.md:3:11: metadata: must map text to text*",
        "*must_pass: is not read*",
        "*a: contains 'billing': satisfied by the question itself*",
    ):
        result.stdout.fnmatch_lines([hint])


def test_what_changes_a_measurement_fails(run_once: Run, write_skill: WriteSkill) -> None:
    (write_skill(name="shipping") / "questions.md").write_text("What is it?", "utf-8")
    write_skill(
        case("unwritten", "Replace this with a question about: fees"),
        case("todo", "TODO"),
        case("path", "questions.md"),
        case("choice", "Send it.", judge="The shipping skill should not be triggered."),
        {"id": "other", "input": "Pay.", "expected_skill": "none-such", "should_trigger": False},
        case("copy", "Copy it.") | {"context": {"files": {"a.md": f"# shipping\n\n{FACT}"}}},
        name="shipping",
        body=FACT,
    )

    result = run_once(*LINT)

    result.assert_outcomes(failed=1)
    lines = [line for line in result.outlines if "skill_meta.json:" in line]
    for name in ("unwritten", "todo", "path", "choice", "other"):
        assert any(f": {name}: " in line for line in lines), name


def test_checks_of_a_query_that_must_not_trigger_never_run(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(case("sing", "Sing of billing.") | {"should_trigger": False})

    result = run_once(*LINT, "-W", "default")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*sing: its checks never run, as should_trigger is false"])


def test_a_placeholder_of_init_is_red_and_the_other_cases_run(
    run_once: Run, write_skill: WriteSkill
) -> None:
    placeholder = "Replace this with a question about: fees"
    check = {"contains": ["Replace this with a text that every right answer has"]}
    write_skill(case("written", "Send it."), case("a", placeholder), case("b", "Pay it.", **check))

    result = run_once("--upskill-models=offline", "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    for what in ("the input is still a placeholder: *", "a check is still a placeholder: *"):
        result.stdout.fnmatch_lines([f"skills/*/skill_meta.json:*: {what}"])


@pytest.mark.parametrize("end", ["---", "..."])
def test_a_skill_without_instructions_is_named(
    end: str, run_once: Run, write_skill: WriteSkill
) -> None:
    folder = write_skill(case("a", "Send it."))
    front = f"---\nname: billing\ndescription: Facts. Use when asked.\n{end}\n"
    (folder / "SKILL.md").write_text(front, "utf-8")

    linted = run_once(*LINT)
    measured = run_once("--upskill-models=offline", "-W", "default", "skills")

    linted.assert_outcomes(failed=1)
    for result in (linted, measured):
        result.stdout.fnmatch_lines(["*skills/billing/SKILL.md: no instructions below the *"])


def test_an_evals_file_anywhere_is_looked_at(run_once: Run, write_skill: WriteSkill) -> None:
    (write_skill() / "skill_meta.json").unlink()
    file = Path("evals", "evals.json")
    file.parent.mkdir()
    evals = [{"id": 1, "prompt": QUESTION, "assertions": [{"type": "contains", "value": "37"}]}]
    file.write_text(json.dumps({"skill_name": "billing", "evals": evals}), "utf-8")

    result = run_once("--upskill-lint", "-v")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["evals/evals.json::lint PASSED*"])


def test_a_case_that_will_be_skipped_is_a_warning(run_once: Run, write_skill: WriteSkill) -> None:
    entry = {"assertions": [{"type": "contains", "value": "37"}]}
    folder = write_skill()
    (folder / "skill_meta.json").unlink()
    (folder / "evals.json").write_text(json.dumps([entry]), "utf-8")

    result = run_once(*LINT, "-W", "default")

    result.assert_outcomes(passed=1, warnings=1)


def test_with_warnings_as_errors_each_warning_is_one_failure_of_one_line(
    run_once: Run, write_skill: WriteSkill
) -> None:
    (write_skill() / "skill_meta.json").unlink()

    result = run_once(*LINT, "-W", "error")

    result.assert_outcomes(failed=1)
    start = next(place for place, line in enumerate(result.outlines) if line.startswith("___"))
    assert result.outlines[start + 1].startswith("no cases: write them into ")
    assert result.outlines[start + 2].startswith("===")


def test_each_file_that_cannot_be_read_or_tells_nothing_is_one_red_item(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(case(contians="x"), name="one")
    write_skill(name="two")
    write_skill(case(contains="billing"), name="three")

    result = run_once(*LINT)

    result.assert_outcomes(passed=1, failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines_random(
        [
            "skills/one/skill_meta.json:1:*.expected.contians: unknown key*",
            "skills/three/skill_meta.json:1:12: a: contains 'billing': satisfied by the question *",
        ]
    )


def test_an_expected_skill_that_does_not_exist_is_named_with_its_place(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill({"id": "a", "input": "Send it.", "expected_skill": "parcel"})

    result = run_once("--upskill-lint", "skills")

    result.stdout.fnmatch_lines(
        ["skills/billing/skill_meta.json:1:12: a: expects 'parcel', which is not in the catalogue*"]
    )
