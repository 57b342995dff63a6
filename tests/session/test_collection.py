"""Which items a case file makes, and what a bad one says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import QUESTION, Run, WriteSkill

CASE = {"id": "budget", "input": QUESTION, "expected": {"contains": "37"}}
META = "skills/billing/skill_meta.json"


def collected(run: Run, *args: str) -> list[str]:
    result = run("--upskill-models", "offline", "--collect-only", "-q", "skills", *args)
    return [line for line in result.outlines if "::" in line]


def rewrite(folder: Path, value: Any) -> None:
    (folder / "skill_meta.json").write_text(json.dumps(value), "utf-8")


def test_every_case_is_an_item_on_each_model_in_each_arm(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(CASE, CASE | {"id": "v1.2"})

    ids = collected(run_once, "--upskill-models", "other=offline")

    assert ids == [
        f"{META}::{case}[{model}-{arm}]"
        for case in ("budget", "v1.2")
        for model in ("offline", "other")
        for arm in ("with_skill", "without_skill")
    ]


def test_names_do_not_change_with_the_number_of_runs(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()

    assert collected(run_once) == collected(run_once, "--upskill-runs", "7")


def test_a_case_runs_on_the_models_it_names_only(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill(CASE | {"models": ["other"]})

    ids = collected(run_once, "--upskill-models", "other=offline")

    assert [name.partition("[")[2] for name in ids] == ["other-with_skill]", "other-without_skill]"]


def test_a_case_for_none_of_the_models_is_skipped_on_all_of_them(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(CASE, CASE | {"id": "hard", "models": ["haiku", "opus"]})

    result = run_once("--upskill-models", "offline,other=offline", "-rs", "skills")

    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=6, skipped=4)
    reason = (
        "it is only for haiku or opus, and this run is on offline, other: choose another model, "
        "or correct 'models' in the case"
    )
    skipped = [line for line in result.outlines if line.startswith("SKIPPED")]
    assert skipped
    assert all(line.endswith(f"skills/billing/skill_meta.json: {reason}") for line in skipped)


def test_every_problem_of_a_skill_is_one_line_with_its_place(
    run_once: Run, write_skill: WriteSkill
) -> None:
    folder = write_skill(CASE, {"id": "budget", "input": "", "expected": {"contians": "37"}})
    (folder / "SKILL.md").unlink()

    result = run_once("--upskill-models", "offline", "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    start = result.outlines.index(next(line for line in result.outlines if "no SKILL.md" in line))
    lines = result.outlines[start : start + 4]
    assert lines[0].startswith("skills/billing: no SKILL.md beside skill_meta.json")
    assert [line.split(": ")[1] for line in lines[1:]] == [
        "cases[1].id",
        "cases[1].input",
        "cases[1].expected.contians",
    ]
    assert all(line.startswith(f"{META}:1:") for line in lines[1:])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_an_unreadable_case_file_is_a_collection_error_of_one_line(
    run: Run, write_skill: WriteSkill
) -> None:
    (write_skill() / "skill_meta.json").write_text('{"cases": [', "utf-8")

    result = run("--upskill-models", "offline", "skills")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"{META}:1:12: *"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("mode", [("--upskill-models", "offline"), ("--upskill-lint",)])
def test_a_skill_file_that_is_asked_for_says_what_to_name_instead(
    run_once: Run, write_skill: WriteSkill, mode: tuple[str, ...]
) -> None:
    write_skill()

    result = run_once(*mode, "skills/billing/SKILL.md")

    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["SKILL.md contains no cases: name its folder instead, skills/billing"]
    )


def test_a_skill_file_that_is_asked_for_is_left_to_who_collects_it(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill(body=">>> 36 + 1\n37\n")

    result = run_once(
        "--upskill-models", "offline", "--doctest-glob", "*.md", "skills/billing/SKILL.md"
    )

    result.assert_outcomes(passed=1)


BROKEN = {
    "no-json": {"skill_meta.json": '{"cases": ['},
    "too-large": {"SKILL.md": f"---\nname: too-large\ndescription: Large.\n---\n{'x' * (1 << 20)}"},
    "no-description": {"SKILL.md": "---\nname: no-description\n---\n"},
    "twin": {"SKILL.md": "---\nname: billing\ndescription: The same name.\n---\n"},
}


@pytest.mark.parametrize(
    "mode",
    [
        ("--upskill-models", "offline"),
        ("--upskill-models", "offline", "-k", "fine"),
        ("--upskill-models", "offline", "-m", "upskill(arm='with_skill')"),
        ("--upskill-models", "offline", "--collect-only"),
        ("--upskill-models", "offline", "--upskill-dry-run"),
        ("--upskill-lint",),
    ],
    ids=" ".join,
)
def test_a_broken_file_is_an_error_of_its_own_and_the_others_run(
    run: Run, write_skill: WriteSkill, mode: tuple[str, ...]
) -> None:
    write_skill(CASE, name="fine")
    write_skill(CASE, CASE | {"id": "asked", "should_trigger": True})
    for name, files in BROKEN.items():
        folder = write_skill(CASE | {"should_trigger": True}, name=name)
        for file, text in files.items():
            (folder / file).write_text(text, "utf-8")

    result = run(*mode, "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    output = result.stdout.str()
    for broken in (*BROKEN, "billing"):
        assert re.search(rf"(ERROR|FAILED) skills/{broken}/skill_meta\.json", output), broken
    outcomes = result.parseoutcomes()
    assert "error" not in outcomes or outcomes["errors"] == len(BROKEN) + 1
    if "--collect-only" not in mode and "--upskill-dry-run" not in mode:
        assert outcomes["passed"] >= 1
    result.stdout.no_fnmatch_line("*Interrupted*")


def test_other_tests_that_cannot_be_imported_still_end_the_run(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    rewrite(write_skill(), {"cases": []})
    (pytester.path / "test_broken.py").write_text("import nothing_of_this_name", "utf-8")

    result = run_once("--upskill-models", "offline")

    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_a_failure_is_located_at_the_line_of_its_case(
    run_once: Run, write_skill: WriteSkill
) -> None:
    folder = write_skill()
    text = json.dumps({"cases": [CASE, CASE | {"id": "red", "expected": {"contains": "38"}}]})
    (folder / "skill_meta.json").write_text(text.replace("{", "\n{"))

    run_once("--upskill-models", "offline", "skills", "-o", "junit_family=xunit1", "--junitxml=x")

    xml = Path("x").read_text()
    # JUnit's lines count from 0, as pytest writes them.
    assert 'name="red[offline-with_skill]" ' in xml
    assert f'file="{META}" line="4"' in xml


@pytest.mark.parametrize("name", [None, "quiz.json"])
def test_skills_without_cases_are_named_where_nothing_ran(
    run: Run, write_skill: WriteSkill, name: str | None
) -> None:
    for skill in ("billing", "shipping"):
        cases = write_skill(name=skill) / "skill_meta.json"
        if name is None:
            cases.unlink()
        else:
            cases.rename(cases.with_name(name))

    result = run("--upskill-models", "offline", "skills")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    hint = (
        "upskill: billing, shipping have no cases: pytest-upskill init SKILL writes a first "
        "skill_meta.json"
    )
    assert result.outlines.count(hint) == 1


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("skills/{}/my-scenarios.json", "my-scenarios.json"),
        ("skills/{}/skill_meta.yaml", "skill_meta.yaml"),
        ("skills/{0}/{0}.scenario.yaml", "*.scenario.yaml"),
    ],
)
def test_files_that_look_like_cases_are_named_with_what_reads_them(
    run: Run, write_skill: WriteSkill, pytester: pytest.Pytester, file: str, pattern: str
) -> None:
    names = [f"skill-{number:02}" for number in range(40)]
    for name in names:
        (write_skill(name=name) / "skill_meta.json").unlink()
        cases = pytester.path / file.format(name)
        cases.parent.mkdir(exist_ok=True)
        evals = [{"prompt": "Hi", "expectations": ["x"]}]
        cases.write_text(json.dumps({"skill_name": name, "evals": evals}), "utf-8")

    result = run("--upskill-models", "offline", ".")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    hints = [line for line in result.outlines if line.startswith("upskill: ")][1:]
    first = file.format(names[0])
    assert hints[0].startswith(f"upskill: 40 files look like cases, such as {first}: to read them")
    assert hints[0].endswith(f", set upskill_case_files = {pattern}")
    assert hints[1].startswith("upskill: skill-00, skill-01, skill-02 and 37 more have no cases: ")
    assert len(hints) == 2
    result = run("--upskill-models", "offline", "-o", f"upskill_case_files={pattern}", "--co", ".")
    result.stdout.fnmatch_lines(["collected 80 items*"])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("skills_meta.json", "skill_meta.json"),
        ("skill-meta.json", "skill_meta.json"),
        ("skillmeta.json", "skill_meta.json"),
        ("eval.json", "evals.json"),
        ("evals/eval.json", "evals.json"),
        ("evals/evals_.json", "evals.json"),
    ],
)
@pytest.mark.parametrize("how", ["--upskill-models=offline", "--upskill-lint"])
def test_a_case_file_with_a_misspelled_name_is_named_beside_others(
    run: Run, write_skill: WriteSkill, how: str, name: str, meant: str
) -> None:
    write_skill()
    own = write_skill(name="other")
    (own / name).parent.mkdir(exist_ok=True)
    (own / "skill_meta.json").rename(own / name)
    if "eval" in name:
        (own / name).write_text('[{"promt": "Hi"}]', "utf-8")

    result = run(how, "-W", "default", "skills")

    result.stdout.fnmatch_lines([f"upskill: skills/other/{name} is not read: rename it to {meant}"])


def test_a_file_that_is_read_because_it_is_named_is_not_called_unread(
    run: Run, write_skill: WriteSkill
) -> None:
    file = write_skill() / "skill_meta.json"
    file = file.rename(file.with_name("skill-meta.json"))

    result = run("--upskill-models=offline", str(file))

    result.assert_outcomes(passed=3)
    result.stdout.no_fnmatch_line("*is not read*")


@pytest.mark.parametrize("name", ["metadata.json", "skill.json", "data/eval.json", "eval.yaml"])
def test_a_file_of_a_skill_that_is_called_otherwise_is_not_taken_for_cases(
    run: Run, write_skill: WriteSkill, name: str
) -> None:
    folder = write_skill()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("{}", "utf-8")

    result = run("--upskill-models", "offline", "skills")

    result.stdout.no_fnmatch_line("*rename it*")


@pytest.mark.parametrize("home", [".claude/skills", "skills/.curated"])
def test_skills_in_a_folder_that_pytest_does_not_enter_are_named_where_nothing_ran(
    run_once: Run, write_skill: WriteSkill, home: str
) -> None:
    skill = write_skill(name="billing")
    Path(home).mkdir(parents=True)
    skill.rename(Path(home, "billing"))

    result = run_once("--upskill-models", "offline")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    told = (
        f"upskill: pytest does not look for tests in {home}, which has skills: "
        "pass it as an argument to run them"
    )
    assert result.outlines.count(told) == 1


@pytest.mark.parametrize("option", ["--upskill-models=offline", "--upskill-lint"])
def test_hidden_skills_are_named_beside_others_but_not_links_to_them(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, option: str
) -> None:
    for home in (".claude", ".agents"):
        (pytester.path / home / "skills").mkdir(parents=True)
    (pytester.path / ".agents/skills/billing").symlink_to(write_skill(name="billing"))
    write_skill(name="hidden").rename(pytester.path / ".claude/skills/hidden")

    result = run_once(option)

    result.stdout.fnmatch_lines(
        ["upskill: pytest does not look for tests in .claude/skills, which has skills: *"]
    )


def test_hidden_skills_are_not_named_where_tests_were_deselected(
    run: Run, write_skill: WriteSkill
) -> None:
    Path(".claude/skills").mkdir(parents=True)
    write_skill(name="hidden").rename(".claude/skills/hidden")
    write_skill(CASE, CASE | {"id": "other"})

    result = run("--upskill-models=offline", "-k", "budget")

    result.stdout.no_fnmatch_line("*does not look for tests*")


def test_a_skill_without_cases_is_not_mentioned_where_others_have_some(
    run_once: Run, write_skill: WriteSkill
) -> None:
    (write_skill(name="shipping") / "skill_meta.json").unlink()
    write_skill()

    result = run_once("--upskill-models", "offline", "skills")

    result.assert_outcomes(passed=3)
    result.stdout.no_fnmatch_line("upskill: *no cases*")


@pytest.mark.parametrize("option", ["--upskill-models=offline", "--upskill-lint"])
def test_a_skill_in_a_python_package_does_not_import_the_package(
    run_once: Run, write_skill: WriteSkill, option: str
) -> None:
    package = write_skill(CASE).parent
    (package / "__init__.py").write_text("import nosuch\n", "utf-8")

    result = run_once(option, "skills")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*nosuch*")


def test_the_tests_of_a_package_with_skills_still_set_it_up(
    run_once: Run, write_skill: WriteSkill
) -> None:
    package = write_skill(CASE).parent
    (package / "__init__.py").write_text("def setup_module(): print('set up')\n", "utf-8")
    (package / "test_first.py").write_text("def test_one(): pass\n", "utf-8")

    result = run_once("--upskill-models", "offline", "-s", "skills")

    assert result.ret == pytest.ExitCode.OK
    assert "set up" in result.stdout.str()


def test_a_folder_without_skills_says_what_is_looked_for(
    run_once: Run, pytester: pytest.Pytester
) -> None:
    pytester.mkdir("skills")
    pytester.makefile(".yml", mkdocs="site_name: Ours")

    result = run_once("skills", "--upskill-models=offline")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    said = "upskill: no skill in skills, that is, no folder with a SKILL.md: name another folder, *"
    result.stdout.fnmatch_lines([said])


@pytest.mark.usefixtures("skill")
@pytest.mark.parametrize(
    ("argument", "meant"),
    [
        ("skills/billing/skills_meta.json", "skill_meta.json"),
        ("skills/biling/skill_meta.json::budget", "billing"),
        ("skils", "skills"),
        ("elsewhere", None),
    ],
)
def test_an_argument_that_does_not_exist_is_an_error_with_what_was_meant(
    argument: str, meant: str | None, run_once: Run
) -> None:
    result = run_once(argument, "--upskill-models=offline")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    cure = f" (did you mean '{meant}'?)" if meant else ""
    assert f"ERROR: file or directory not found: {argument}{cure}" in result.errlines


@pytest.mark.usefixtures("skill")
def test_workers_that_find_nothing_say_what_was_meant(run: Run) -> None:
    result = run("skils", "--upskill-models=offline")

    lines = [*result.outlines, *result.errlines]
    assert any("file or directory not found: skils (did you mean 'skills'?)" in x for x in lines)


def test_a_case_file_with_a_misspelled_name_is_named(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()
    file = write_skill(name="other") / "skill_meta.json"
    file.rename(file.with_name("skills_meta.json"))

    result = run_once("skills", "--upskill-models=offline")

    said = "upskill: skills/other/skills_meta.json is not read: rename it to skill_meta.json"
    assert [line for line in result.outlines if "skills/other" in line] == [said]


def test_a_skill_md_in_lower_case_is_named(run: Run, write_skill: WriteSkill) -> None:
    folder = write_skill(name="other")
    (folder / "skill_meta.json").unlink()
    (folder / "SKILL.md").rename(folder / "skill.md")

    result = run("skills", "--upskill-models=offline")

    said = [line for line in result.outlines if "skills" in line]
    assert said == ["upskill: skills/other/skill.md is not read: rename it to SKILL.md"]
