from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FACT, QUESTION, Run

CASE = {"id": 1, "prompt": QUESTION, "assertions": [{"type": "contains", "value": "37"}]}
IDS = [
    "skills/billing/evals/evals.json::1[offline-with_skill]",
    "skills/billing/evals/evals.json::1[offline-without_skill]",
]


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    folder = pytester.path / "skills" / "billing"
    folder.mkdir(parents=True)
    text = f"---\nname: billing\ndescription: Facts for a test.\n---\n\n# billing\n\n{FACT}"
    (folder / "SKILL.md").write_text(text, "utf-8")
    return folder


def write(path: Path, value: Any = (CASE,)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


def collected(run: Run, *args: str) -> list[str]:
    result = run("--upskill-models", "offline", "--collect-only", "-q", *(args or ("skills",)))
    return [line for line in result.outlines if "::" in line]


def test_cases_in_evals_run_like_those_of_skill_meta(run: Run, folder: Path) -> None:
    write(folder / "evals" / "evals.json", {"skill_name": "billing", "evals": [CASE]})

    result = run("--upskill-models", "offline", "skills")

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["  offline  0->100% *+100 *"])


@pytest.mark.parametrize(
    "name", ["evals.json", "evals.yaml", "evals/evals.yml", "evals/evals.jsonl"]
)
def test_a_file_of_each_name_and_place_is_collected(run_once: Run, folder: Path, name: str) -> None:
    write(folder / name, CASE if name.endswith("l") else [CASE])

    ids = collected(run_once)

    assert ids == [nodeid.replace("evals/evals.json", name) for nodeid in IDS]


def test_both_files_of_one_skill_are_collected(run_once: Run, folder: Path) -> None:
    write(folder / "evals" / "evals.json")
    write(folder / "skill_meta.json", [{"input": "a", "expected": {"contains": "b"}}])

    assert len(collected(run_once)) == 4


@pytest.mark.parametrize("folder_of_cases", ["eval", "tests", "benchmark"])
def test_a_skill_may_keep_its_cases_in_a_folder_of_another_name(
    run_once: Run, folder: Path, folder_of_cases: str
) -> None:
    write(folder / folder_of_cases / "evals.json")

    assert collected(run_once) == [
        nodeid.replace("/evals/", f"/{folder_of_cases}/") for nodeid in IDS
    ]


@pytest.mark.parametrize("home", ["skills", ".claude/skills", ".agents/skills"])
@pytest.mark.parametrize("place", ["evals/evals.json", "evals/billing/evals.json"])
def test_cases_kept_beside_all_skills_belong_to_the_one_that_they_name(
    run_once: Run, folder: Path, home: str, place: str
) -> None:
    top = folder.parent.parent
    (top / home).mkdir(parents=True, exist_ok=True)
    folder.rename(top / home / "billing")
    write(top / place, {"skill_name": "billing", "evals": [CASE]})

    assert collected(run_once, "evals") == [
        nodeid.replace("skills/billing/evals/evals.json", place) for nodeid in IDS
    ]


@pytest.mark.parametrize("place", ["evals/evals.json", "evals.json"])
def test_cases_kept_beside_the_only_skill_are_for_it(
    run_once: Run, folder: Path, place: str
) -> None:
    top = folder.parent.parent
    only = folder.rename(top / "skill") / "SKILL.md"
    only.write_text(only.read_text("utf-8").replace("name: billing", "name: skill"), "utf-8")
    write(top / place)

    assert collected(run_once, ".") == [
        nodeid.replace("skills/billing/evals/evals.json", place) for nodeid in IDS
    ]


def test_cases_that_name_another_skill_are_none_of_its(run_once: Run, folder: Path) -> None:
    write(folder.parent.parent / "evals" / "parcels" / "evals.json")

    result = run_once("--upskill-models", "offline", "evals")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_file_of_that_name_without_a_skill_is_none_of_our_business(
    run_once: Run, pytester: pytest.Pytester
) -> None:
    write(pytester.path / "evals" / "evals.json", {"metrics": ["accuracy"]})

    result = run_once("--upskill-models", "offline", "evals")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_asked_for_by_name_such_a_file_says_what_it_lacks(
    run_once: Run, pytester: pytest.Pytester
) -> None:
    write(pytester.path / "evals" / "evals.json")

    result = run_once("--upskill-models", "offline", "evals/evals.json")

    result.stdout.fnmatch_lines(["*evals: no SKILL.md beside evals.json (a skill is a folder *"])


def test_what_needs_an_agent_is_skipped_unpaid_and_says_why(run: Run, folder: Path) -> None:
    script = CASE | {"id": "script", "expected_script": "scripts/a.py"}
    spoken = {"id": "spoken", "prompt": "Say hi", "assertions": ["Says hi"]}
    write(folder / "evals" / "evals.json", [CASE, script, spoken])

    result = run("--upskill-models", "offline", "-rs", "skills")

    result.assert_outcomes(passed=3, skipped=4)
    result.stdout.fnmatch_lines(
        [
            "SKIPPED*evals.json: expected_script: a single answer runs no scripts",
            "SKIPPED*evals.json: only has statements for a judge; add --upskill-judge MODEL",
        ]
    )


def test_a_statement_without_a_judge_does_not_count_as_held(run_once: Run, folder: Path) -> None:
    mixed = CASE | {"assertions": [*CASE["assertions"], "Is polite"]}  # type: ignore[misc]
    write(folder / "evals" / "evals.json", [mixed])

    result = run_once("--upskill-models", "offline", "skills")

    result.stdout.fnmatch_lines(["  offline *0.0->1.0/1.0*"])


def test_a_skill_below_a_hidden_folder_runs_where_the_folder_is_named(
    run_once: Run, folder: Path, pytester: pytest.Pytester
) -> None:
    write(folder / "evals" / "evals.json")
    for hidden in (".claude", ".agents"):
        (pytester.path / hidden).mkdir()
        (pytester.path / hidden / "skills").symlink_to(folder.parent)

    assert len(collected(run_once, ".claude/skills")) == 2
    assert len(collected(run_once, ".agents/skills")) == 2
