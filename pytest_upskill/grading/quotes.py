"""Check that a judge's quote occurs in the answer, despite what copying loses."""

from __future__ import annotations

import re
import unicodedata

MIN_QUOTE = 8
"""Minimum number of characters of evidence, or of a piece of it."""

_QUOTES = "\"'`´‘’‚‛“”„‟′″‹›«»「」"  # noqa: RUF001  the characters to fold
_DASHES = "-‐‑‒–—―−"  # noqa: RUF001
_FOLDED = str.maketrans(
    dict.fromkeys(_QUOTES, "'") | dict.fromkeys(_DASHES, "-") | dict.fromkeys("*_~|`", "")
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_LINE_MARK = re.compile(r"^[ \t]*(?:>[ \t]*)*(?:#{1,6}[ \t]|[-+*•][ \t])?", re.MULTILINE)
_NUMBER = re.compile(r"^[ \t]*\d{1,3}[.)][ \t]", re.MULTILINE)
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_LONE_DASHES = re.compile(r"(?<!\S)-+(?!\S)")
_ELLIPSIS = re.compile(r"\[?(?:…|\.{3,})\]?")
_EDGES = " .,;:!?'…"
"""Characters, once folded, at the ends of a quote that prove nothing."""
_AROUND = f" \n\t.…{_QUOTES}"


def occurs(quote: str, answer: str) -> bool:
    """Return whether the answer contains a quote; an empty one always is.

    Markdown, case, quotation marks, dashes and blanks do not count. A quote may leave parts out
    with ``…``; its pieces of at least ``MIN_QUOTE`` characters then occur in their order.
    """
    # Before folding: what a copy puts around hides marks that count at the start of a line only.
    quote = quote.strip(_AROUND)
    return any(
        _contains(fold(answer, numbers=numbers), fold(quote, numbers=numbers))
        for numbers in (True, False)
    )


def proves(quote: str, answer: str) -> bool:
    """Return whether a quote is long enough to be evidence: a short answer is so as a whole."""
    return len(fold(quote).strip(_EDGES)) >= min(MIN_QUOTE, len(fold(answer).strip(_EDGES)))


def fold(text: str, *, numbers: bool = True) -> str:
    """Return a text on one line, without the markup and spaces that a copy may lose.

    Args:
        text: Any text.
        numbers: Whether to keep the numbers of lists.
    """
    text = unicodedata.normalize("NFC", text)
    text = _LINE_MARK.sub("", _LINK.sub(r"\1", text))
    if not numbers:
        text = _NUMBER.sub("", text)
    text = _ESCAPE.sub("", text).translate(_FOLDED).casefold()
    return " ".join(_LONE_DASHES.sub(" ", text).split())


def _contains(answer: str, quote: str) -> bool:
    quote = quote.strip(_EDGES)
    if quote in answer:
        return True
    pieces = [stripped for piece in _ELLIPSIS.split(quote) if (stripped := piece.strip(_EDGES))]
    if len(pieces) < 2 and _ELLIPSIS.search(quote) is None:  # noqa: PLR2004  nothing is left out
        return False
    start = 0
    for piece in pieces:
        start = answer.find(piece, start) + len(piece)
        if len(piece) < MIN_QUOTE or start < len(piece):
            return False
    return bool(pieces)
