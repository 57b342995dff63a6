"""Long answers are short in the terminal, and complete with -v."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Reply

TAIL = 90 * "x"
LONG = "\n".join(f"Line {number}. {TAIL}" for number in range(30))


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


def test_a_long_answer_is_cut(run_once: Run, write_skill: WriteSkill, model: str) -> None:
    write_skill(*red(1), {**red(1)[0], "id": "other", "input": "A short one."})

    result = run_once(model, "--junitxml=x.xml", "skills")

    out = result.outlines
    assert f"| Line 29. {TAIL}" in Path("x.xml").read_text("utf-8")
    assert [out.count(f"| Line {number}. {TAIL}") for number in (0, 8, 11)] == [1, 1, 0]
    assert out.count(f"| [... {len(LONG) - 1000} more characters]") == 1
    assert sum("answer: -v shows all of it" in line for line in out) == 1
    assert out.count("| No.") == 1


def test_verbose_writes_every_failure_whole(
    run_once: Run, write_skill: WriteSkill, model: str
) -> None:
    write_skill(*red(2))

    result = run_once(model, "-v", "skills")

    assert result.outlines.count(f"| Line 29. {TAIL}") == 2
