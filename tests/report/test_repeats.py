"""Failures that repeat themselves are short in the terminal, and complete with -v."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Reply

LONG = "\n".join(f"Line {number}." for number in range(30))


@pytest.fixture
def model(loopback: Loopback) -> str:
    loopback.answer = lambda received: Reply(text="No." if "short" in received.user else LONG)
    return f"--upskill-models=m@{loopback.openai_url}"


def red(count: int) -> list[dict[str, object]]:
    expected = {"contains": ["37", "38"]}
    return [
        {"id": f"c{number}", "input": f"{QUESTION} ({number})", "expected": expected}
        for number in range(count)
    ]


def test_the_first_failures_of_a_skill_are_whole_and_the_rest_one_line_each(
    run: Run, write_skill: WriteSkill, model: str
) -> None:
    write_skill(*red(12))
    write_skill(*red(1), name="shipping")

    result = run(model, "skills", "--junitxml=x.xml")

    out = result.outlines
    assert sum(line.startswith("contains '37': not in the answer") for line in out) == 13
    assert sum(line.startswith("contains '38': not in the answer") for line in out) == 11
    assert sum(line.startswith("FAILED skills/") for line in out) == 13
    result.stdout.fnmatch_lines(
        ["details of 2 more failures are left out, after the first 10 of a skill on a model; *"]
    )
    result.assert_outcomes(failed=13, passed=15)
    assert Path("x.xml").read_text("utf-8").count("contains '38': not in the answer") == 13


def test_a_long_answer_is_cut_and_is_written_once(
    run_once: Run, write_skill: WriteSkill, model: str
) -> None:
    write_skill(*red(2), {**red(1)[0], "id": "other", "input": "A short one."})

    result = run_once(model, "skills")

    out = result.outlines
    assert [out.count(f"| Line {number}.") for number in (0, 19, 20)] == [1, 1, 0]
    assert out.count("[... 10 more lines; -v shows them]") == 1
    assert out.count("(the same as for c0)") == 1
    assert out.count("| No.") == 1


def test_verbose_writes_every_failure_whole(
    run_once: Run, write_skill: WriteSkill, model: str
) -> None:
    write_skill(*red(12))

    result = run_once(model, "-v", "skills")

    assert result.outlines.count("| Line 29.") == 12
    result.stdout.no_fnmatch_line("*left out*")
