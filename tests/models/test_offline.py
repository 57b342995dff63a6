"""The embedded model quotes from its context, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from pytest_upskill.models import Completion, Request, parse_model
from pytest_upskill.models.offline import EXCERPT, NO_REFERENCE, OfflineClient
from tests.conftest import Run, WriteSkill

SKILL = """\
---
name: brewing
description: Teapots and kettles. Use when brewing.
---

# Brewing

Warm the teapot first.

## Kettle firmware

Flash the kettle over serial:

```toml
[kettle]
temperature = 96
```

Then restart it.

## Washing up

- Rinse the strainer under cold water.
- Never scrub the seasoned teapot.
"""


def ask(
    question: str, *, skill: str = SKILL, files: str = "", max_tokens: int = 1000
) -> Completion:
    request = Request(
        model=parse_model("offline"),
        frame="Answer the request.",
        skill=f'\n\n<skill name="brewing">\n{skill}</skill>' if skill else "",
        user=question + files,
        max_tokens=max_tokens,
        run=0,
    )
    return asyncio.run(OfflineClient().complete(request))


def test_the_matching_section_is_quoted_with_its_code_block_and_not_the_others() -> None:
    answer = ask("How do I flash new firmware to my kettle?").text

    assert answer.startswith(EXCERPT)
    assert "```toml\n[kettle]\ntemperature = 96\n```" in answer
    assert "strainer" not in answer


@pytest.mark.parametrize("question", ["Which teapots need scrubbing?", "scrubs TEAPOT"])
def test_words_match_in_whatever_inflection_and_case(question: str) -> None:
    answer = ask(question).text

    assert "Never scrub the seasoned teapot." in answer


@pytest.mark.parametrize("question", ["How many kettles?", "How much firmware?"])
def test_the_words_that_make_it_a_question_need_not_be_there(question: str) -> None:
    assert "Flash the kettle over serial" in ask(question).text


def test_one_common_word_is_enough_where_no_passage_has_two() -> None:
    answer = ask("Is anything said about a strainer, or about an excavator?").text

    assert "Rinse the strainer" in answer
    assert "firmware" not in answer


@pytest.mark.parametrize("skill", [SKILL, ""])
@pytest.mark.parametrize("question", ["What is the capital of Mongolia?", "What should I do?"])
def test_a_question_about_something_else_gets_no_reference(skill: str, question: str) -> None:
    answer = ask(question, skill=skill)

    assert answer.text == NO_REFERENCE
    assert answer.stop_reason == "end"


def test_the_question_is_never_repeated() -> None:
    answer = ask("Does firmware xyzzy-42 work on my kettle?").text

    assert "xyzzy" not in answer


@pytest.mark.parametrize("end", ["---", "..."])
def test_the_frontmatter_is_not_quoted(end: str) -> None:
    skill = SKILL.replace("\n---\n", f"\n{end}\n", 1)

    answer = ask(
        "When should the description of teapots and kettles be used for brewing?", skill=skill
    ).text

    assert "description:" not in answer


def test_attached_files_are_quoted_with_and_without_the_skill() -> None:
    files = '\n\n<file name="stock.csv">\nsku,shelf\nassam,17\n</file>'
    question = "On which shelf does stock.csv have the assam?"

    answers = [ask(question, skill=skill, files=files).text for skill in (SKILL, "")]

    assert all("```csv\nsku,shelf\nassam,17\n```" in answer for answer in answers)


def test_a_fence_inside_an_attached_file_does_not_end_its_quotation() -> None:
    files = '\n\n<file name="notes.txt">\nassam shelf\n```\nx\n```\n</file>'

    answer = ask("assam shelf?", skill="", files=files).text

    assert "````txt\nassam shelf\n```\nx\n```\n````" in answer


def test_an_attached_markdown_file_is_read_by_section() -> None:
    files = f'\n\n<file name="notes.md">\n{SKILL}\n</file>'

    answer = ask("How do I flash new firmware to my kettle?", skill="", files=files).text

    assert "temperature = 96" in answer
    assert "strainer" not in answer


def test_a_long_section_is_quoted_in_part() -> None:
    filler = "\n".join(f"- Shelf {n} holds {'x' * 60}." for n in range(100))

    answer = ask("Where is the assam kept?", skill=f"## Tea\n\n{filler}\n- Assam is kept dry.\n")

    assert "Assam is kept dry." in answer.text
    assert len(answer.text) < 1200


def test_an_answer_cut_by_max_tokens_says_so() -> None:
    answer = ask("How do I flash new firmware to my kettle?", max_tokens=20)

    assert answer.stop_reason == "max_tokens"
    assert len(answer.text) == 80


def test_tokens_are_a_quarter_of_the_characters_rounded_up() -> None:
    answer = ask("tea", skill="")

    assert answer.input_tokens == 6
    assert answer.output_tokens == -(-len(NO_REFERENCE) // 4)
    assert answer.served_model == "offline"


def test_equal_matches_are_quoted_in_the_order_of_the_skill() -> None:
    skill = "## Oolong\n\nsteep slowly\n\n## Sencha\n\nslowly steep\n\n## Assam\n\nsteep slowly\n"

    answer = ask("How slowly must tea steep?", skill=skill).text

    assert answer.index("Oolong") < answer.index("Sencha") < answer.index("Assam")


def test_a_passage_is_quoted_with_every_heading_above_it() -> None:
    skill = "# History\n\n## 3.2.0\n\n### Removed\n\nThe oolong adapter.\n\n## 3.1.0\n\n### Added\n"

    answer = ask("Which release removed the oolong adapter?", skill=skill).text

    assert "# History\n\n## 3.2.0\n\n### Removed\n\nThe oolong adapter." in answer


@pytest.mark.parametrize(("language", "answer"), [("C", "qsort"), ("C++", "std::sort")])
def test_c_and_cpp_are_told_apart(language: str, answer: str) -> None:
    skill = "## Sorting in C\n\nCall qsort.\n\n## Sorting in C++\n\nCall std::sort.\n"

    text = ask(f"What is for sorting in {language}?", skill=skill).text

    assert text.splitlines()[4] == f"Call {answer}."


def test_a_runner_up_that_does_not_fit_is_left_out() -> None:
    sections = [f"## Oolong {n}\n\nSteep {'x' * 700}\n\n" for n in range(9)]

    answer = ask("How does one steep oolong?", skill="".join(sections)).text

    assert [n for n in range(9) if f"## Oolong {n}\n" in answer] == [0, 1, 2]


def test_a_fact_that_is_in_the_skill_but_not_quoted_is_said_to_be_there(
    run_once: Run, write_skill: WriteSkill
) -> None:
    expected = {"contains": ["37", "absent"]}
    body = "## Invoices\n\nWe number them from 37.\n\n## Refunds\n\nWe pay customers within a week."
    question = "When do you pay customers a refund?"
    write_skill({"id": "a", "input": question, "expected": expected}, body=body)

    result = run_once("--upskill-models=offline", "skills")

    (said,) = [line for line in result.outlines if "for offline to quote it" in line]
    assert said.startswith("the skill has '37', in a passage that shares too few words")
