"""Atomic writing of files that other processes may read at the same time."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from functools import partial
from io import BufferedWriter
from pathlib import Path


def write_whole(file: Path, data: bytes, *, mode: int = 0o600, like: Path | None = None) -> None:
    """Write a file atomically, and create its folder if it does not exist.

    Args:
        file: The file to create or replace.
        data: Its whole content.
        mode: Its permissions, before the umask is applied.
        like: A file whose permissions and, if allowed, owner it gets instead.

    Raises:
        OSError: The file could not be written and is unchanged.
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
        if like is not None:
            _copy_owner(like, temporary)
            shutil.copymode(like, temporary)
        temporary.replace(file)
    except BaseException:  # also Ctrl-C
        with suppress(OSError):
            temporary.unlink()
        raise


def _copy_owner(source: Path, target: Path) -> None:
    if sys.platform != "win32":
        status = source.stat()
        with suppress(OSError):  # only root may give a file away
            os.chown(target, status.st_uid, status.st_gid)


def _create(file: Path, mode: int) -> BufferedWriter:
    return open(file, "xb", opener=partial(os.open, mode=mode))
