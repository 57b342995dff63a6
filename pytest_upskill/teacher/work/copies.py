"""Whether a text copies another."""

from __future__ import annotations

import re
from collections.abc import Sequence

WORDS = 8
"""Words in a row that two texts share by copying only."""

_WORD = re.compile(r"\w+")


def copies_words(text: str, original: str) -> bool:
    """Return whether a text holds 8 words in a row of another, ignoring case and punctuation.

    An original of 4 to 7 words is copied if all of them are there, so that short questions count.
    """
    words, wanted = _WORD.findall(text.casefold()), _WORD.findall(original.casefold())
    length = min(WORDS, len(wanted))
    return length >= WORDS // 2 and not _word_runs(words, length).isdisjoint(
        _word_runs(wanted, length)
    )


def _word_runs(words: Sequence[str], length: int) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(words[i : i + length]) for i in range(len(words) - length + 1))
