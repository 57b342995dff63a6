from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill
from tests.repository import commit_all, git

pytestmark = pytest.mark.needs("git")

RUNS = ("--upskill-models=offline", "--upskill-runs=5", "skills")
FACTS = {
    "budget": ("What is the retry budget of the billing service?", "37 attempts"),
    "owner": ("Which team owns the invoice archive?", "the lighthouse team"),
    "port": ("On which port does the ledger daemon listen?", "port 4711"),
}
SENTENCES = {
    "budget": "The retry budget of the billing service is 37 attempts.",
    "owner": "The invoice archive: its owner is the lighthouse team.",
    "port": "The ledger daemon listens on port 4711.",
}
KNOWN_TO_FAIL = "port"

PullRequest = Callable[[dict[str, str]], None]


def body(sentences: dict[str, str]) -> str:
    return "\n".join(f"## {case}\n\n{text}\n" for case, text in sentences.items())


@pytest.fixture
def pull_request(write_skill: WriteSkill, run_once: Run, pytester: pytest.Pytester) -> PullRequest:
    """Commit a good skill with its baseline on main; return what commits another on a branch."""
    good = SENTENCES | {KNOWN_TO_FAIL: "The ledger daemon listens."}
    cases = [
        {
            "id": case,
            "input": question,
            "expected": {"contains": answer},
            "min_pass_rate": 0 if case == KNOWN_TO_FAIL else 1,
        }
        for case, (question, answer) in FACTS.items()
    ]
    folder = write_skill(*cases, body=body(good))
    assert run_once(*RUNS, "--upskill-baseline-update").ret == pytest.ExitCode.OK
    commit_all(pytester.path, "main")
    git(pytester.path, "switch", "--quiet", "--create", "branch")

    def change(sentences: dict[str, str]) -> None:
        file = folder / "SKILL.md"
        head = file.read_text("utf-8").partition("## budget")[0]
        file.write_text(head + body(good | sentences), "utf-8")
        commit_all(pytester.path, "branch")

    return change


COMPARE = pytest.mark.parametrize("then", ["baseline", "main"])


@COMPARE
def test_a_branch_that_breaks_a_case_is_red(pull_request: PullRequest, run: Run, then: str) -> None:
    pull_request({"owner": "The invoice archive: ask around."})

    result = run(*RUNS, f"--upskill-compare={then}")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            f"billing on offline: regression: 5/15 with the skill, {then} 10/15, p = .002 *",
            "worse: owner: 5/5 -> 0/5",
        ]
    )
    assert result.parseoutcomes()["failed"] == 2


@COMPARE
def test_a_branch_that_changes_nothing_of_the_skill_is_green(
    pull_request: PullRequest, run: Run, pytester: pytest.Pytester, then: str
) -> None:
    pull_request({})
    Path(pytester.path, "README.md").write_text("Words.\n", "utf-8")
    commit_all(pytester.path)

    result = run(*RUNS, f"--upskill-compare={then}")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*regression*")


@COMPARE
def test_a_branch_that_repairs_a_case_is_green(
    pull_request: PullRequest, run: Run, then: str
) -> None:
    pull_request({KNOWN_TO_FAIL: SENTENCES[KNOWN_TO_FAIL]})

    result = run(*RUNS, f"--upskill-compare={then}")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [f"billing on offline: 15/15 with the skill, {then} 10/15, p = .998"]
    )


def test_a_branch_that_words_a_fact_another_way_is_green(
    pull_request: PullRequest, run_once: Run
) -> None:
    pull_request({"owner": "Owner of the invoice archive, by decree, is the lighthouse team."})

    result = run_once(*RUNS, "--upskill-compare=main")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["billing on offline: 10/15 with the skill, main 10/15, p = .5"])


def test_merging_a_branch_that_repairs_a_case_raises_the_bar(
    pull_request: PullRequest, run_once: Run, pytester: pytest.Pytester
) -> None:
    pull_request({KNOWN_TO_FAIL: SENTENCES[KNOWN_TO_FAIL]})
    run_once(*RUNS, "--upskill-baseline-update")
    commit_all(pytester.path, "record the baseline again")
    pull_request({})

    result = run_once(*RUNS, "--upskill-compare=baseline")

    result.stdout.fnmatch_lines(
        ["billing on offline: regression: 10/15 with the skill, baseline 15/15, p = .002 *"]
    )
