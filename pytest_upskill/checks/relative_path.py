"""Validation of file names from answers and cases."""

from __future__ import annotations

import re

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}"
_PATH = re.compile(rf"(?:\./)?({_SEGMENT}(?:/{_SEGMENT}){{0,7}})")


def relative_path(text: str) -> str | None:
    """Return a relative path of plain characters, which cannot lead out of its folder.

    Backslashes become slashes, and a leading ``./`` is removed.

    Returns:
        The path; None if the text is not such a path.
    """
    match = _PATH.fullmatch(text.strip().replace("\\", "/"))
    return match[1] if match else None
