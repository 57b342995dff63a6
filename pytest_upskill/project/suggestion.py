"""Suggestions in messages about a word that is probably misspelled."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant, None if none is close."""
    return next(iter(get_close_matches(word, list(known), n=1)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'contains'?)"``, to follow a word; empty if none is close."""
    close = closest(word, known)
    return f" (did you mean {close!r}?)" if close else ""
