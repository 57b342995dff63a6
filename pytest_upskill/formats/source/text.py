"""Reading of text files of limited size."""

from __future__ import annotations

from pathlib import Path
from stat import S_ISREG

from pytest_upskill.formats.source.problems import BadFile, Problem

MAX_BYTES = 1 << 20
"""Maximum size of a file."""


def read_text(path: Path, max_bytes: int = MAX_BYTES, cure: str = "split it") -> str:
    """Read a text file in UTF-8, with or without a byte order mark.

    Args:
        path: The file.
        max_bytes: Its maximum size.
        cure: What to do about a larger file.

    Raises:
        BadFile: The file cannot be read, is no regular file, or is larger than ``max_bytes``.
    """
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):
            raise BadFile([Problem(what="is not a file")])
        if status.st_size > max_bytes:
            raise BadFile([Problem(what=f"is larger than {max_bytes >> 20} MiB: {cure}")])
        with path.open("rb") as file:
            content = file.read()
    except OSError as error:
        raise BadFile([Problem(what=f"cannot be read: {error.strerror}")]) from None
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
