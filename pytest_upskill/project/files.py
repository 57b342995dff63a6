"""The folder of a project, and its files, which may come from a stranger's pull request.

A file that is read is a regular one of limited size; no link in a project leads out of it, for
reading or for writing; and nothing waits for the other end of a pipe.
"""

import errno
import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

from pytest_upskill import STATE

CATALOGUE = "catalogue.json"
"""Name of the committed catalogue in ``.upskill``."""

BASELINES = "baselines"
"""Name of the folder of the baselines in ``.upskill``."""

RUNS = "runs"
"""Name of the folder of the history in ``.upskill``."""

DRAFTS = "drafts"
"""Name of the folder in ``.upskill`` with one for each command of a teacher."""

ANSWERS = "answers.txt"
"""Name of the file in such a folder that lists its recordings by the starts of their digests."""

MAX_TEXT_BYTES = 1 << 20
"""Maximum size of a file that people write."""

MAX_STATE_BYTES = 8 << 20
"""Maximum size of a file that this program writes."""

_MAX_VALUES = 100_000
"""Maximum number of values in JSON: a reader needs several hundred bytes for each."""

_MAX_NUMBER = 1e15

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

# Digits of an exponent are often in a digest too, so what is found is looked at again.
_EXTREME_NUMBER = re.compile(rb"(?<![\d.])\d{16}|\d[eE]\+?\d{3}|NaN|Infinity")


def ignore_in_git(folder: Path) -> None:
    """Write a ``.gitignore`` for a folder of this program, unless it has one.

    Raises:
        OSError: It cannot be written.
    """
    file = folder / ".gitignore"
    if not file.exists():
        write_file(file, b"*\n")


def project_folder(start: Path, *others: Path) -> Path:
    """Return the folder that contains ``.upskill``, or in which it will be created.

    Args:
        start: An absolute path in the project, such as pytest's rootdir.
        others: Where to start if ``start`` is in no git repository and one of them is.

    Returns:
        The nearest folder from ``start`` upwards that contains ``.upskill``, within the git
        repository; else the root of the repository; else ``start``.
    """
    start = next(filter(_is_in_repository, (start, *others)), start)
    return next(filter(_is_project, (start, *start.parents)), start)


def _is_in_repository(path: Path) -> bool:
    return any((folder / ".git").exists() for folder in (path, *path.parents))


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file, and neither a link to one nor a pipe.

    Raises:
        OSError: It is no regular file, or cannot be opened.
    """
    opened = os.open(path, _FLAGS)
    if stat.S_ISREG(os.fstat(opened).st_mode):
        return os.fdopen(opened, "rb")
    os.close(opened)
    raise OSError(errno.EINVAL, "not a regular file")


def read_file(path: Path, max_bytes: int) -> bytes:
    """Read a whole file.

    Raises:
        FileNotFoundError: There is no such file.
        OSError: It cannot be read, is no regular file, is larger than ``max_bytes``, or a link
            leads out of the project; ``strerror`` says which.
    """
    with open_regular(refuse_way_out(path)) as file:
        # Not read(max_bytes), which reserves that much memory.
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            limit = f"{max_bytes >> 20} MiB" if max_bytes >> 20 else f"{max_bytes >> 10} KiB"
            raise OSError(errno.EFBIG, f"larger than {limit}")
        return file.read(size)


def read_state(
    path: Path, max_bytes: int = MAX_STATE_BYTES, max_values: int = _MAX_VALUES
) -> bytes:
    """Read a JSON file whose parsing takes little memory, and whose numbers can be calculated with.

    Raises:
        FileNotFoundError: There is no such file.
        OSError: As of `read_file`, or there are more than ``max_values``, or too large numbers.
    """
    data = read_file(path, max_bytes)
    if sum(map(data.count, (b",", b"[", b"{"))) > max_values:
        raise OSError(errno.EFBIG, f"more than {max_values:,} values")
    if _EXTREME_NUMBER.search(data):
        # What is no JSON, or nested too deeply, is left to its reader.
        with suppress(ValueError, RecursionError):
            json.loads(data, parse_int=_bounded, parse_float=_bounded, parse_constant=_bounded)
    return data


def write_file(file: Path, data: bytes, *, mode: int = 0o600, like: Path | None = None) -> None:
    """Write a file atomically, and create its folder if it does not exist.

    Args:
        file: The file to create or replace; a device or pipe, such as ``/dev/stdout``, is written
            to.
        data: Its whole content.
        mode: Its permissions, before the umask is applied.
        like: A file whose permissions and, if allowed, owner it gets instead.

    Raises:
        OSError: The file could not be written and is unchanged, or a link leads out of the project.
    """
    refuse_way_out(file)
    if file.exists() and not file.is_file() and not file.is_dir():
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_NONBLOCK), "wb") as stream:
            os.set_blocking(stream.fileno(), True)
            stream.write(data)
        return
    temporary = file.parent / f"{os.urandom(8).hex()}.tmp"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(temporary, "xb", opener=partial(os.open, mode=mode)) as created:
            created.write(data)
        if like is not None:
            status = like.stat()
            with suppress(OSError):  # only root may give a file away
                os.chown(temporary, status.st_uid, status.st_gid)
            temporary.chmod(stat.S_IMODE(status.st_mode))
        temporary.replace(file)
    except BaseException as error:  # also Ctrl-C
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):  # of the temporary file, which nobody knows
            raise OSError(error.errno, error.strerror, os.fspath(file)) from None
        raise


def json_by_line(fields: Mapping[str, Any]) -> bytes:
    """Return JSON with a line for each field, and for each item of the last one, which is a list.

    That keeps diffs and conflicts of committed files small.
    """
    *head, last = fields.items()
    items = ",\n".join(f"  {json.dumps(item, ensure_ascii=False)}" for item in last[1])
    lines = [f' "{name}": {json.dumps(value, ensure_ascii=False)},\n' for name, value in head]
    return f'{{\n{"".join(lines)} "{last[0]}": [\n{items}\n ]\n}}\n'.encode()


def refuse_way_out(path: Path) -> Path:
    """Return a path without links, unless one leads it out of its project.

    Raises:
        OSError: ``strerror`` has the target of the link.
    """
    target = os.path.realpath(path)
    # Most paths have no link, and recordings are many.
    if target != os.path.abspath(path) and leads_out(path.absolute()):  # noqa: PTH100
        raise OSError(errno.ELOOP, f"a link leads out of the project, to {target}")
    return Path(target)


def leads_out(path: Path, root: Path | None = None) -> Path | None:
    """Return the target of a path if a symbolic link leads it out of its project, else None.

    A project is a git repository, a folder with ``.upskill``, or ``root``. Links above the project
    are ignored.

    Args:
        path: An absolute path.
        root: Another folder that counts as a project; None for none.
    """
    target = Path(os.path.realpath(path))
    if target == path:
        return None
    for link in (path, *path.parents):
        if not link.is_symlink():
            continue
        tops = [top for top in link.parents if top == root or _is_project(top)]
        if tops and not any(is_inside(target, top) for top in tops):
            return target
    return None


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path is in a folder, wherever links lead."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def real_name(path: Path, folder: Path) -> str:
    """Return the name of a path relative to a folder, wherever links lead."""
    return Path(os.path.relpath(os.path.realpath(path), os.path.realpath(folder))).as_posix()


def display_path(path: Path) -> str:
    """Return a path relative to the current folder, or the path itself if it is elsewhere."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _is_project(folder: Path) -> bool:
    return os.path.lexists(folder / ".git") or os.path.lexists(folder / STATE)


def _bounded(number: str) -> None:
    if not abs(float(number)) < _MAX_NUMBER:
        raise OSError(errno.ERANGE, "a number is out of range")
