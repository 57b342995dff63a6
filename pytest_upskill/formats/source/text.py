"""Reading of text files of limited size."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from pytest_upskill.formats.source.problems import BadFile, Problem
from pytest_upskill.repository.files import MAX_TEXT_BYTES, open_regular, read_file

_START = 64 << 10
"""Characters at the start of a file."""


def read_text(path: Path, max_bytes: int = MAX_TEXT_BYTES, cure: str = "split it") -> str:
    """Read a text file in UTF-8, with or without a byte order mark.

    Args:
        path: The file.
        max_bytes: Its maximum size.
        cure: What to do about a larger file.

    Raises:
        BadFile: The file cannot be read, is no regular file, or is larger than ``max_bytes``.
    """
    try:
        content = read_file(path, max_bytes)
    except OSError as error:
        hint = f": {cure}" if error.errno == errno.EFBIG else ""
        raise BadFile([Problem(what=f"cannot be read: {error.strerror}{hint}")]) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A byte order mark is neither in the error's object nor in its offsets.
        before = error.object[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode()) + 1
        line = before.count(b"\n") + 1
        byte = f"byte {error.start} (0x{error.object[error.start]:02x})"
        what = f"{byte} is not UTF-8: save the file as UTF-8"
        raise BadFile([Problem(line=line, column=column, what=what)]) from None


def start_of(path: Path) -> str:
    """Return the start of a file, "" if it cannot be read."""
    with suppress(OSError), open_regular(Path(os.path.realpath(path))) as file:
        return file.read(_START).decode("utf-8", "replace")
    return ""
