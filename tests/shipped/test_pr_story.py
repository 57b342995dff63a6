"""A pull request that changes a skill, from red to green."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import junit
from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git
from tests.loopback import Loopback, Received

pytestmark = [pytest.mark.slow, pytest.mark.needs("git")]

RUNS = ("--upskill-runs=5", "skills")
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


def recite(loopback: Loopback) -> Callable[[Received], str]:
    """Return a model that repeats its context, in no two runs with the same words."""
    return lambda received: f"{received.system} ({len(loopback.requests)})"


def body(sentences: dict[str, str]) -> str:
    return "\n".join(f"## {case}\n\n{text}\n" for case, text in sentences.items())


@pytest.fixture
def pull_request(
    write_skill: WriteSkill,
    run_once: Run,
    pytester: pytest.Pytester,
    loopback: Loopback,
    monkeypatch: pytest.MonkeyPatch,
) -> PullRequest:
    """Commit a good skill with its baseline on main; return what commits another on a branch."""
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--upskill-models=m=small@{loopback.openai_url}")
    loopback.answer = recite(loopback)
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
    base = "the baseline" if then == "baseline" else then

    result = run(*RUNS, f"--upskill-compare={then}")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            f"billing on m: the skill became worse than {base}: owner (all cases: 5/15 with *)",
            "worse: owner: 5/5 -> 0/5",
            "next: restore what the skill has lost*",
        ]
    )
    assert result.parseoutcomes()["failed"] == 2


@COMPARE
def test_a_branch_that_changes_nothing_of_the_skill_is_green(
    pull_request: PullRequest, run_once: Run, pytester: pytest.Pytester, then: str
) -> None:
    pull_request({})
    Path(pytester.path, "README.md").write_text("Words.\n", "utf-8")
    commit_all(pytester.path)

    result = run_once(*RUNS, f"--upskill-compare={then}")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*became worse*")


@COMPARE
def test_a_branch_that_repairs_a_case_is_green(
    pull_request: PullRequest, run_once: Run, then: str
) -> None:
    pull_request({KNOWN_TO_FAIL: SENTENCES[KNOWN_TO_FAIL]})

    result = run_once(*RUNS, f"--upskill-compare={then}")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [f"billing on m: +33 points * (15/15 with the skill, {then} 10/15)"]
    )


def test_after_a_repair_is_merged_a_branch_that_undoes_it_is_red(
    pull_request: PullRequest, run_once: Run, pytester: pytest.Pytester
) -> None:
    pull_request({KNOWN_TO_FAIL: SENTENCES[KNOWN_TO_FAIL]})
    run_once(*RUNS, "--upskill-baseline-update")
    commit_all(pytester.path, "record the baseline again")
    pull_request({})

    result = run_once(*RUNS, "--upskill-compare=baseline")

    result.stdout.fnmatch_lines(
        ["* the skill became worse than the baseline: port (all cases: 10/15 with *, p = 0.002)"]
    )


def test_every_report_begins_with_the_regression_its_cases_and_the_next_step(
    pull_request: PullRequest, run_once: Run
) -> None:
    pull_request({"owner": "The invoice archive: ask around."})
    formats = ("json", "md", "html")
    files = [f"--upskill-{name}=report.{name}" for name in formats]

    result = run_once(*RUNS, "--upskill-compare=baseline", "--junitxml=junit.xml", *files)

    result.stdout.no_fnmatch_line("too few runs on *")
    headline = (
        "billing on m: the skill became worse than the baseline: owner (all cases: 5/15 with "
    )
    step = "restore what the skill has lost; where that is right, record the baseline again"
    assert "regression" in next(
        line for line in result.outlines if line.startswith("  m       0->33%")
    )
    json_, md, page = (Path(f"report.{name}").read_text("utf-8") for name in formats)
    (entry,) = json.loads(json_)["entries"]
    assert entry["figures"]["verdict"] == "regression"
    assert entry["gate"]["text"].startswith(headline)
    assert headline in md.splitlines()[1]
    assert step in md
    gate = junit.cases_of(Path("junit.xml"))["gate[m]"]
    assert junit.properties(gate)["upskill.verdict"] == "regression"
    failure = gate.find("failure")
    assert failure is not None
    assert failure.get("message", "").startswith(headline)
    assert step in (failure.text or "")
    text = html.unescape(re.sub("<[^>]*>", "", page))
    assert headline in text.partition("Skills and models")[0]
    assert step in text
    # The case that the branch broke is no case that tells nothing; the other one is.
    assert re.search(r"port\s+(?:failed\s+)?never passes", text)
    assert re.search(r"owner\s+failed\s+regressed", text)
