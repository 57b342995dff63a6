"""Files that look like cases and are not read, and names that were misspelled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill


def collected(run: Run, *args: str) -> list[str]:
    result = run("--upskill-models", "offline", "--collect-only", "-q", "skills", *args)
    return [line for line in result.outlines if "::" in line]


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("skills/{}/my-scenarios.json", "my-scenarios.json"),
        ("skills/{}/questions.json", "questions.json"),
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
    assert hints[0].startswith(f"upskill: files look like cases, but are not read: {first}, ")
    assert hints[0].endswith(f' and 37 more; to read them, set upskill_case_files = ["{pattern}"]')
    assert hints[1].startswith("upskill: skill-00, skill-01, skill-02 and 37 more have no cases: ")
    assert len(hints) == 2
    result = run("--upskill-models", "offline", "-o", f"upskill_case_files={pattern}", "--co", ".")
    result.stdout.fnmatch_lines(["collected 80 items*"])


CASES = json.dumps([{"prompt": "Hi", "expectations": ["x"]}])


def hints_of(run: Run, pytester: pytest.Pytester, texts: Mapping[str, str]) -> list[str]:
    """Return what is said of files that are not read."""
    for name, text in texts.items():
        (pytester.path / name).parent.mkdir(exist_ok=True, parents=True)
        (pytester.path / name).write_text(text, "utf-8")
    result = run("--upskill-models", "offline", ".")
    return [line for line in result.outlines if "like cases" in line]


def test_of_many_names_the_first_few_are_offered(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill(name="csv")
    cases = CASES.replace("{", '{"skill": "csv", ')
    (hint,) = hints_of(run_once, pytester, {f"test/{name}.json": cases for name in "abcd"})

    assert hint.endswith('; to read them, set upskill_case_files = ["a.json", "b.json", "c.json"]')


def test_of_a_file_whose_skill_is_unknown_the_hint_says_so(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    for name in ("csv", "xml"):
        write_skill(name=name)
    hints = hints_of(run_once, pytester, {"test/quiz.json": CASES})

    cure = "add 'skill', or set upskill_case_files = [\"quiz.json=FOLDER_OF_SKILL\"]"
    lack = "files look like cases, but of no known skill: test/quiz.json"
    assert hints == [f"upskill: {lack}; {cure}"]


def test_a_file_outside_the_rootdir_is_not_named(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    folder = write_skill(name="csv")
    (folder / "quiz-cases-of.json").write_text(CASES, "utf-8")
    (pytester.path / "inner").mkdir()
    (pytester.path / "inner" / "pytest.ini").write_text("[pytest]\n", "utf-8")
    result = run_once("--upskill-models", "offline", "-c", "inner/pytest.ini", "--co", str(folder))

    result.stdout.no_fnmatch_line("*look like cases*")


@pytest.mark.parametrize("text", ['[{"prompt": "Hi"}]', "{}", "["])
def test_a_listed_file_that_holds_no_cases_is_an_error(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, text: str
) -> None:
    for name in ("csv", "xml"):
        write_skill(name=name)
    (pytester.path / "test").mkdir()
    (pytester.path / "test" / "quiz.json").write_text(text, "utf-8")

    result = run_once("--upskill-models", "offline", "-o", "upskill_case_files=quiz.json", ".")

    result.assert_outcomes(passed=6, errors=1)
    result.stdout.fnmatch_lines(["test/quiz.json:1:*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("skills_meta.json", "skill_meta.json"),
        ("skill-meta.json", "skill_meta.json"),
        ("skillmeta.json", "skill_meta.json"),
        ("skill_meta.jsonc", "skill_meta.json"),
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


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("quiz.json **/skill_meta.json none/*.json", "no file is called 'quiz.json': *"),
        (
            "quiz.json=skills/biling",
            "no SKILL.md in 'skills/biling' (did you mean 'skills/billing'[?]): write the path *",
        ),
    ],
)
def test_a_listed_file_or_skill_that_does_not_exist_is_refused(
    run_once: Run, write_skill: WriteSkill, setting: str, problem: str
) -> None:
    write_skill()

    listed = f"upskill_case_files={setting}"
    result = run_once("--upskill-models", "offline", "-o", listed, "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*upskill_case_files: {problem}"])


@pytest.mark.parametrize("file", ["more.json", "cases/more.json"])
def test_a_listed_file_outside_the_arguments_is_named(
    run_once: Run, write_skill: WriteSkill, file: str
) -> None:
    write_skill()
    cases = [{"input": "What?", "expected": {"contains": "37"}}]
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(json.dumps({"cases": cases}), "utf-8")
    setting = f"upskill_case_files={file}=skills/billing"

    result = run_once("--upskill-models", "offline", "-o", setting, "skills")

    result.stdout.fnmatch_lines(
        [f"upskill: {file} was not named as an argument, so not all cases of billing run"]
    )


def test_a_file_that_names_its_skill_outside_the_arguments_is_named(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill()
    text = "skill: billing\nprompts: [Hi]\ntests: [{assert: [{type: icontains, value: no}]}]\n"
    pytester.path.joinpath("promptfooconfig.yaml").write_text(text, "utf-8")

    result = run_once("--upskill-models", "offline", "skills")

    result.stdout.fnmatch_lines(
        ["upskill: promptfooconfig.yaml was not named as an argument, so not all cases of *"]
    )


def test_the_setting_is_offered_as_the_settings_file_spells_it(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill(name="csv")
    pytester.makeini("[pytest]\n")

    (hint,) = hints_of(run_once, pytester, {"test/a.json": CASES.replace("{", '{"skill": "csv", ')})

    assert hint.endswith("; to read them, set upskill_case_files = a.json")
