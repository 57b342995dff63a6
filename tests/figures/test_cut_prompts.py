"""A server that cuts long prompts, so that the skill does not arrive whole, is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Received, Reply, know

CONTEXT = 4096


def write_long_skill(write_skill: WriteSkill, words: int) -> None:
    skill = write_skill()
    prose = " ".join(f"fact{number} matters" for number in range(words // 2))
    with (skill / "SKILL.md").open("a", encoding="utf-8") as file:
        file.write(prose)


def cuts(received: Received) -> Reply:
    """Answer, and count as many tokens as fit into the context."""
    tokens = min(CONTEXT, len(received.system + received.user) // 4)
    return replace(know(received), usage={"prompt_tokens": tokens, "completion_tokens": 3})


@pytest.mark.parametrize(("words", "is_cut"), [(6000, True), (100, False)])
def test_a_prompt_of_which_the_server_counts_too_few_tokens_is_one_line_in_every_report(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    words: int,
    *,
    is_cut: bool,
) -> None:
    write_long_skill(write_skill, words)
    loopback.answer = cuts

    result = run_once(
        "--upskill-models", model, "--upskill-md=out.md", "--upskill-html=out.html", "skills"
    )

    said = "the server counted at most 4,096 tokens in prompts of at least "
    for report in (
        result.stdout.str(),
        *(Path(f"out.{kind}").read_text() for kind in ("md", "html")),
    ):
        assert (said in report) == is_cut
    if is_cut:
        result.stdout.fnmatch_lines(["* it cuts long prompts, so raise its context length (*"])
