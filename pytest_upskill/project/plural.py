"""Numbers with their nouns, as all messages write them."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 run``, ``2 runs``, ``3 queries``.

    Args:
        count: The number.
        noun: The noun in the singular.
        plural: Its plural; empty to add an s.
    """
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
