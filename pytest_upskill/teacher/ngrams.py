"""Whether two texts share a run of words."""

from __future__ import annotations

import re

WORDS = 8
"""Words in a row that two texts share by copying only."""

_WORD = re.compile(r"\w+")


def ngrams(text: str, length: int = WORDS) -> frozenset[tuple[str, ...]]:
    """Return every run of ``length`` words of a text, ignoring case and punctuation.

    A shorter text of at least half that length is one run, so that short questions count too.
    """
    words = _WORD.findall(text.casefold())
    if length > len(words) >= length // 2:
        length = len(words)
    return frozenset(tuple(words[i : i + length]) for i in range(len(words) - length + 1))


def copies(text: str, original: str, length: int = WORDS) -> bool:
    """Return whether a text holds a run of words of another, or the whole of a short one."""
    runs = ngrams(original, length)
    return any(not runs.isdisjoint(ngrams(text, size)) for size in {len(run) for run in runs})
