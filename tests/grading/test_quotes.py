# ruff: noqa: RUF001  typographic characters are what is tested
"""A judge's quote counts as evidence whatever a copy loses, but not where it was made up."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.grading.judge import occurs, proves

ANSWER = """\
## Cause – and cure

The **most likely** cause is *noise*: “three of 40 runs” failed. See the
[retry guide](https://example.org/retry#top), it’s short.

1. Set `retry_budget = 37` in `billing.toml`.
2. Run the suite again — twice, if you can.
   - Never raise the _timeout_ above 30 s…
   * Don't delete `state/`.

> Nobody has seen it fail with seed != 0.

| flag | meaning |
|------|---------|
| `--seed` | fixes the order |

```python
if attempts >= limit and not done:
    raise RetryError("gave up")
```
"""

PASSAGES = [
    "The **most likely** cause is *noise*: “three of 40 runs” failed.",
    "See the\n[retry guide](https://example.org/retry#top), it’s short.",
    "1. Set `retry_budget = 37` in `billing.toml`.",
    "2. Run the suite again — twice, if you can.",
    "- Never raise the _timeout_ above 30 s…\n   * Don't delete `state/`.",
    "> Nobody has seen it fail with seed != 0.",
    "| flag | meaning |\n|------|---------|\n| `--seed` | fixes the order |",
    'if attempts >= limit and not done:\n    raise RetryError("gave up")',
]


def _shortened(text: str) -> str:
    words = text.split()
    return f"{' '.join(words[:3])} … {' '.join(words[-3:])}"


COPIES: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "without Markdown": lambda text: re.sub(r"\[(.*?)\]\(.*?\)", r"\1", re.sub("[*_`]", "", text)),
    "in one line": lambda text: " ".join(text.split()),
    "upper case": str.upper,
    "straight quotes": lambda text: text.translate(str.maketrans("“”’", '""\'')),
    "typographic quotes": lambda text: text.replace('"', "”").replace("'", "’"),
    "other dashes": lambda text: text.replace("—", "-").replace("–", "--"),
    "in quotes": lambda text: f"“{text}”",
    "with an ellipsis around": lambda text: f"…{text}...",
    "without list numbers": lambda text: re.sub(r"^\d\. ", "", text),
    "with a full stop": lambda text: f"{text}.",
}


@pytest.mark.parametrize("copy", COPIES)
def test_a_quote_survives_what_copying_does_to_it(copy: str) -> None:
    lost = [passage for passage in PASSAGES if not occurs(COPIES[copy](passage), ANSWER)]

    assert lost == []


def test_blanks_of_an_ellipsis_prove_nothing() -> None:
    assert not proves("… . . . … . . .", ANSWER)


def test_a_quote_may_leave_parts_out() -> None:
    assert occurs("The most likely cause … three of 40 runs ... See the retry guide", ANSWER)
    assert occurs("Set retry_budget = 37 […] Run the suite again", ANSWER)


INVENTED = [
    "The least likely cause is noise",
    "The most likely cause is a bug",
    "three of 41 runs failed",
    "Set retry_budget = 38 in billing.toml",
    "Set retry_budget == 37 in billing.toml",
    "Nobody has seen it fail with seed == 0",
    "Everybody has seen it fail",
    "if attempts <= limit and not done",
    "if attempts >= limit and done",
    "raise the timeout above 30 s whenever you like",
    "three of 40 runs … The most likely cause",  # in the other order
    "The most likely cause … it is a bug for sure",
    "The cause … noise … failed",  # pieces too short to prove anything
    "the skill says so",
]


@pytest.mark.parametrize("quote", INVENTED)
def test_a_quote_that_was_made_up_is_no_evidence(quote: str) -> None:
    assert not occurs(quote, ANSWER)


def test_a_quote_with_another_word_or_number_is_no_evidence() -> None:
    exchanged = [
        passage.replace(old, new)
        for passage, (old, new) in product(
            PASSAGES,
            [
                ("is", "was"),
                ("37", "3"),
                ("again", "once"),
                ("Never", "Always"),
                ("it", "she"),
                ("not", "now"),
                ("order", "seed"),
                ("40", "400"),
                ("short", "long"),
                (">=", ">"),
                ("delete", "keep"),
                ("flag", "option"),
            ],
        )
        if old in passage
    ]

    assert len(exchanged) >= 12
    assert [quote for quote in exchanged if occurs(quote, ANSWER)] == []


def test_a_piece_of_a_short_answer_is_evidence_if_it_is_all_of_it() -> None:
    assert proves("37", " **37**.\n")
    assert not proves("37", "37 attempts, no more")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_every_part_of_an_answer_is_a_quote_of_it(before: str, part: str, after: str) -> None:
    # Marks at the start of a line, and links, are only known where they are whole.
    part = re.sub(r"[^\w ,;:?=<]", "", part)

    assert occurs(part, f"{before}\n\n{part}\n\n{after}")
