"""Texts of messages: safe to print, numbers with their nouns, suggestions."""

import re
from collections.abc import Iterable, Sequence

_UNSAFE = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\xa0\u061c\ud800-\udfff\ufff9-\ufffb\ufffe\uffff"
    "\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
# GitHub's runner finds `##[` anywhere in a line and `::` only at its start (actions/runner,
# ActionCommand.cs); Azure's and TeamCity's look for `##vso[` and `##teamcity[`.
_ANYWHERE = re.compile(r"##(?=\w*\[)")
_AT_START = re.compile(r"^([^\S\n]*+):(?=:\w)", re.MULTILINE)


def safe(text: str) -> str:
    r"""Return a text with visible control characters and without commands for CI systems.

    Terminal escapes, bidirectional overrides and invisible characters become ``\x1b`` and so on.
    ``##[``, ``##vso[``, ``##teamcity[`` and a ``::`` at the start of a line get a space after their
    first character. ``[[ATTACHMENT|``, with which some JUnit readers upload a file, gets a
    backslash. Line breaks and tabs are kept. Safe text is unchanged.
    """
    text = text.replace("\r\n", "\n").replace("[[ATTACHMENT|", "[[ATTACHMENT\\|")
    text = _UNSAFE.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
    return _AT_START.sub(r"\1: ", _ANYWHERE.sub("# #", text))


def safe_line(text: str) -> str:
    """Return a safe text on one line, with visible line breaks and tabs."""
    return safe(text).replace("\n", "\\n").replace("\t", "\\t")


_FORMULA = re.compile(r"(^|[;,\t])(?=\s*[=+@-])")
"""Before what a spreadsheet would calculate, also if it separates fields by semicolons."""


def not_a_formula(text: str) -> str:
    """Return a safe text on one line that no spreadsheet takes for a formula."""
    return _FORMULA.sub(r"\1'", safe_line(text))


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 run``, ``2 runs``, ``3 queries``.

    Args:
        count: The number.
        noun: The noun in the singular.
        plural: Its plural; empty to add an s.
    """
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def agreeing(verb: str, count: int) -> str:
    """Return a verb in the number of its subject: ``is`` of one, ``are`` of others."""
    return verb if count == 1 else {"is": "are", "was": "were", "has": "have"}[verb]


def listed(names: Sequence[str], most: int | None = 3) -> str:
    """Return the first names, each once, and the number of the others: ``a, b, c and 2 more``.

    Args:
        names: The names.
        most: How many to list; None for all.
    """
    names = [*dict.fromkeys(names)]
    more = f" and {len(names) - most} more" if most is not None and len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def did_you_mean(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return ``" (did you mean 'contains'?)"``, to follow a word; empty if none is close.

    Args:
        word: A word.
        known: The words that it may be.
        least: Least similarity, from 0 to 1.
    """
    # Imported here, because few sessions have a misspelled word.
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), n=1, cutoff=least)
    return f" (did you mean {close[0]!r}?)" if close else ""


_NUMBER = re.compile(
    r"('[^']*'|HTTP \d+|[\w.-]+:\d+)|\breq_\w+|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|(?<!\w)(?:\d+(?:[.,]\d+)*(?:ms|s|m|h)?)+(?!\w)"
)
"""Numbers that differ between errors with one cause, and before them what does not."""


def without_numbers(error: str) -> str:
    """Return an error without counts, seconds and ids, but with names, statuses and ports."""
    label, colon, text = error.partition(": ")
    return label + colon + _NUMBER.sub(lambda match: match[1] or "#", text)
