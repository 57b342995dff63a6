"""Whether a text copies another."""

from __future__ import annotations

import re
from collections.abc import Sequence

WORDS = 8
"""So many words in a row are the same in two texts only if one copies the other."""

_WORD = re.compile(r"\w+")


def copies_words(text: str, original: str) -> bool:
    """Return whether a text has 8 words in a row from another, ignoring case and punctuation.

    If the original has 4 to 7 words, all of them count, so that short questions are found.
    """
    words, copied = _WORD.findall(text.casefold()), _WORD.findall(original.casefold())
    length = min(WORDS, len(copied))
    return length >= WORDS // 2 and not _word_runs(words, length).isdisjoint(
        _word_runs(copied, length)
    )


def _word_runs(words: Sequence[str], length: int) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(words[i : i + length]) for i in range(len(words) - length + 1))
