"""What commands print in a terminal."""

from __future__ import annotations

import sys

from pytest_upskill.cells.wording import columns
from pytest_upskill.sanitize.safe_text import safe_line


def can_print(text: str) -> bool:
    """Return whether standard output can encode a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def say(*lines: str) -> None:
    """Write lines to standard output, with what a terminal or CI could take for commands shown."""
    sys.stdout.writelines(f"{safe_line(line)}\n" for line in lines)


def warn(*lines: str) -> None:
    """Write lines to standard error in the same way."""
    sys.stderr.writelines(f"{safe_line(line)}\n" for line in lines)


def cut(text: str, width: int) -> str:
    """Return a text that takes at most so many columns, with dots where it was cut."""
    if columns(text) <= width:
        return text
    while columns(text) > width - 3:
        text = text[:-1]
    return f"{text.rstrip()}..."
