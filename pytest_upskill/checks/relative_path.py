"""File names that come from outside: from an answer or a case."""

from __future__ import annotations

import re

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}"
_PATH = re.compile(rf"(?:\./)?({_SEGMENT}(?:/{_SEGMENT}){{0,7}})")


def relative_path(text: str) -> str | None:
    """Read a relative path of plain characters that cannot leave its folder.

    Returns:
        The path with slashes, without a leading ``./``; None where the text is no such path.
    """
    match = _PATH.fullmatch(text.strip().replace("\\", "/"))
    return match[1] if match else None
