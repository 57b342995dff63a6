"""Files that others may read while they are written."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from io import BufferedWriter
from pathlib import Path


def write_whole(file: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write a file at once or not at all, and make its folder if there is none.

    Args:
        file: What to write or to replace.
        data: All of it.
        mode: Who may read it, less what the umask takes away.

    Raises:
        OSError: Nothing was written.
    """
    temporary = file.parent / f"{os.urandom(8).hex()}.tmp"
    try:
        stream = _create(temporary, mode)
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        stream = _create(temporary, mode)
    try:
        with stream:
            stream.write(data)
        temporary.replace(file)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def _create(file: Path, mode: int) -> BufferedWriter:
    return open(file, "xb", opener=partial(os.open, mode=mode))
