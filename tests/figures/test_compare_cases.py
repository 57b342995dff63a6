"""Which cases a comparison with a git ref leaves out, and which it names as removed or changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git

pytestmark = pytest.mark.needs("git")

COMPARE = "--upskill-compare=main"
OFFLINE = ("--upskill-models=offline", "skills")


@pytest.mark.parametrize("name", ["skill_meta.json", "evals/evals.json"])
def test_cases_that_were_removed_or_changed_since_are_named(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, name: str
) -> None:
    folder = write_skill()
    (folder / "skill_meta.json").unlink()
    (folder / name).parent.mkdir(exist_ok=True)

    def write(*cases: tuple[str, str], text: str) -> None:
        own = [{"id": i, "input": f"{i}?", "expected": {"contains": c}} for i, c in cases]
        evals = [
            {"id": i, "prompt": f"{i}?", "assertions": [{"type": "contains", "value": c}]}
            for i, c in cases
        ]
        (folder / name).write_text(json.dumps(own if name == "skill_meta.json" else evals))
        (folder / "SKILL.md").write_text(f"---\nname: billing\ndescription: d\n---\n{text}\n")

    write(("a", "37"), ("b", "12"), ("c", "9"), text="a? 37. b? 12. c? 9.")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    write(("c", "9"), ("a", "3"), text="a? 3. c? 9.")

    result = run_once(*OFFLINE, COMPARE, "--upskill-md=out.md", "--upskill-html=out.html")

    line = "cases since main (???????): removed: b; changed: a: a worse skill may look better, *"
    result.stdout.fnmatch_lines([f"billing on offline: {line}"])
    for page in ("out.md", "out.html"):
        assert "removed: b; changed: a" in Path(page).read_text("utf-8")


def test_removed_cases_of_an_unchanged_text_are_named_with_q_too(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    case = {"id": "b", "input": "b?", "expected": {"contains": "37"}}
    folder = write_skill(case, {**case, "id": "a", "input": "a?"})
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    (folder / "skill_meta.json").write_text(json.dumps([case]))

    result = run_once(*OFFLINE, COMPARE, "-q")

    result.stdout.fnmatch_lines(
        ["billing on offline: cases since main (???????): removed: a: a worse *"]
    )


@pytest.mark.parametrize("changes", [("cases",), ("cases", "text")])
def test_cases_outside_the_folder_of_their_skill_are_compared_too(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester, changes: tuple[str, ...]
) -> None:
    folder = write_skill()
    (folder / "skill_meta.json").unlink()
    file = pytester.path / "evals" / "billing" / "evals.json"
    file.parent.mkdir(parents=True)
    cases = [
        {"id": i, "prompt": f"{i}?", "assertions": [{"type": "contains", "value": "37"}]}
        for i in "ab"
    ]
    file.write_text(json.dumps({"skill_name": "billing", "evals": cases}))
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    file.write_text(json.dumps({"skill_name": "billing", "evals": cases[1:]}))
    if "text" in changes:
        with (folder / "SKILL.md").open("a") as text:
            text.write("More.\n")

    result = run_once("--upskill-models=offline", COMPARE, ".")

    result.stdout.fnmatch_lines(
        ["billing on offline: cases since main (???????): removed: a: a worse *"]
    )


def test_a_case_by_another_name_is_the_same_case(repository: Path, run_once: Run) -> None:
    file = repository / "skills" / "billing" / "skill_meta.json"
    file.write_text(file.read_text("utf-8").replace('"id": "', '"id": "new-'), "utf-8")
    with (repository / "skills" / "billing" / "SKILL.md").open("a") as text:
        text.write("More.\n")

    result = run_once(*OFFLINE, COMPARE, "--upskill-fail-on=cases")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*points against main: 0 of 1 case better, 1 unchanged; *"])


def test_a_case_about_another_skill_is_not_changed(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    folder = write_skill()
    write_skill(name="shipping")
    (folder / "skill_meta.json").unlink()
    (folder / "evals").mkdir()
    case = {"id": "a", "prompt": "Send?", "expected_skill": "shipping"}
    told = {"id": "b", "prompt": "What?", "assertions": [{"type": "contains", "value": "37"}]}
    (folder / "evals" / "evals.json").write_text(json.dumps([case, told]))
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    with (folder / "SKILL.md").open("a") as file:
        file.write("More.\n")

    result = run_once(*OFFLINE, COMPARE)

    result.stdout.no_fnmatch_line("*cases since*")


def test_a_case_removed_from_a_file_that_the_settings_list_is_named(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    folder = write_skill()
    (folder / "skill_meta.json").unlink()
    file = pytester.mkdir("cases") / "more.json"
    cases = [{"id": i, "input": f"{i}?", "expected": {"contains": "37"}} for i in "a2"]
    file.write_text(json.dumps({"cases": cases}), "utf-8")
    commit_all(pytester.path)
    git(pytester.path, "switch", "--quiet", "--create", "branch")
    file.write_text(json.dumps({"cases": cases[:1]}), "utf-8")
    setting = "upskill_case_files=cases/more.json=skills/billing"

    result = run_once("--upskill-models=offline", COMPARE, "-o", setting, "skills", "cases")

    result.stdout.fnmatch_lines(
        ["billing on offline: cases since main (???????): removed: case 2: *"]
    )
