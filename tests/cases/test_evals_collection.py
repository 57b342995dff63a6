"""Cases of evals files in a run of pytest: how they run, and when they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases.conftest import CASE, collected, write
from tests.conftest import Run


def test_both_files_of_one_skill_are_collected(run_once: Run, folder: Path) -> None:
    write(folder / "evals" / "evals.json")
    write(folder / "skill_meta.json", [{"input": "a", "expected": {"contains": "b"}}])

    assert len(collected(run_once)) == 4


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("quiz.toml", "*quiz.toml: cases are read from .csv, .json, .jsonl, .md, .yaml, .yml only"),
        ("quiz.json", "*evals/quiz.json:1:1: contains no cases: write [[]{*"),
    ],
)
def test_a_named_file_that_cannot_be_read_says_why(
    run_once: Run, folder: Path, name: str, reason: str
) -> None:
    write(folder / "evals" / name, {"a": 1})

    result = run_once("--upskill-models", "offline", f"skills/billing/evals/{name}")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([reason])


def test_a_file_with_too_many_cases_is_refused(run_once: Run, folder: Path) -> None:
    write(folder / "evals" / "evals.json", [CASE | {"id": number} for number in range(1001)])

    result = run_once("--upskill-models", "offline", "skills")

    result.stdout.fnmatch_lines(["*evals.json: has 1,001 cases; a file may have 1,000: split it"])


@pytest.mark.parametrize("link", ["skills/billing", "skills/billing/SKILL.md", "skills"])
def test_a_link_of_a_skill_out_of_the_project_is_not_followed(
    run_once: Run, pytester: pytest.Pytester, folder: Path, link: str, tmp_path_factory: Any
) -> None:
    write(folder / "evals" / "evals.json")
    outside = tmp_path_factory.mktemp("outside") / Path(link).name
    (pytester.path / link).rename(outside)
    (pytester.path / link).symlink_to(outside)

    result = run_once("--upskill-models", "offline", "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"*: this link leads outside the project, to {outside.parent}*"])


def test_cases_that_need_an_agent_or_a_judge_are_skipped_with_the_reason(
    run_once: Run, folder: Path
) -> None:
    script = CASE | {"id": "script", "expected_script": "scripts/a.py"}
    spoken = {"id": "spoken", "prompt": "Say hi", "assertions": ["Says hi"]}
    write(folder / "evals" / "evals.json", [CASE, script, spoken])

    result = run_once("--upskill-models", "offline", "-rs", "skills")

    result.assert_outcomes(passed=3, skipped=4)
    result.stdout.fnmatch_lines(
        [
            "SKIPPED*evals.json: has files or needs commands ('ran_script'): write an agent*",
            "SKIPPED*evals.json: has only statements for a judge: add --upskill-judge MODEL",
        ]
    )


def test_a_skill_below_a_hidden_folder_runs_where_the_folder_is_named(
    run_once: Run, folder: Path, pytester: pytest.Pytester
) -> None:
    write(folder / "evals" / "evals.json")
    for hidden in (".claude", ".agents"):
        (pytester.path / hidden).mkdir()
        (pytester.path / hidden / "skills").symlink_to(folder.parent)

    assert len(collected(run_once, ".claude/skills")) == 2
    assert len(collected(run_once, ".agents/skills")) == 2


def test_a_sentence_that_ends_with_a_word_about_skills_is_an_answer(
    run_once: Run, folder: Path
) -> None:
    text = "It names the conditions, and it proposes a review or a reversal trigger"
    write(folder / "evals" / "evals.json", [{"prompt": "What next?", "expected_output": text}])

    result = run_once("--upskill-models", "offline", "--co", "skills")

    result.stdout.fnmatch_lines(["upskill: 1 case: 1 by a judge"])


def test_a_broken_skill_breaks_only_its_own_cases_in_a_file_of_several(
    run_once: Run, folder: Path
) -> None:
    broken = folder.parent / "broken" / "SKILL.md"
    broken.parent.mkdir()
    broken.write_text("---\nname: broken\n", "utf-8")
    cases = [CASE | {"skill": "billing"}, CASE | {"id": 2, "skill": "broken"}]
    write(folder.parent.parent / "evals" / "evals.json", cases)

    result = run_once("--upskill-models", "offline", "-rA")

    assert result.ret == 1
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(
        [
            "skills/broken/SKILL.md:1:1: the frontmatter has no end: *",
            "PASSED evals/evals.json::billing::1?offline-with_skill?",
        ]
    )


def test_a_file_is_refused_if_every_skill_of_its_cases_is_broken(
    run_once: Run, folder: Path
) -> None:
    (folder / "SKILL.md").write_text("---\nname: billing\n", "utf-8")
    write(folder.parent.parent / "evals" / "evals.json", [CASE | {"skill": "billing"}])

    result = run_once("--upskill-models", "offline")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["skills/billing/SKILL.md:1:1: the frontmatter has no end: *"])


def test_lint_names_a_broken_skill_of_a_file_of_several(run_once: Run, folder: Path) -> None:
    (folder.parent / "broken").mkdir()
    (folder.parent / "broken" / "SKILL.md").write_text("---\nname: broken\n", "utf-8")
    cases = [CASE | {"skill": "billing"}, CASE | {"id": 2, "skill": "broken"}]
    write(folder.parent.parent / "evals" / "evals.json", cases)

    result = run_once("--upskill-lint", "-W", "default", "evals")

    result.stdout.fnmatch_lines(["skills/broken/SKILL.md:1:1: the frontmatter has no end: *"])
