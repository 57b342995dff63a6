"""Files that others may read while they are written."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_whole(file: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write a file at once or not at all, and make its folder if there is none.

    Args:
        file: What to write or to replace.
        data: All of it.
        mode: Who may read it.

    Raises:
        OSError: Nothing was written.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        Path(temporary).chmod(mode)
        Path(temporary).replace(file)
    except OSError:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
