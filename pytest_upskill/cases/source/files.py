"""Reading of files and folders of limited size; links that lead out of a folder are refused."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pytest_upskill.cases.source.document import BadFile, Problem
from pytest_upskill.checks.files import MAX_BYTES, MAX_FILES, WorkspaceFile, is_safe_name
from pytest_upskill.project.files import MAX_TEXT_BYTES, is_inside, open_regular, read_file

MAX_FILE_BYTES = 128 << 10
"""Maximum size of a file that is sent to a model."""

MAX_TOTAL_BYTES = 256 << 10
"""Maximum total size of the files that are sent with a case, or with a skill."""

MAX_BUNDLE_BYTES = 8 << 20
"""Maximum size of a git bundle with the history of a workspace."""


class Unreadable(ValueError):  # noqa: N818  a reason to leave a file out, not an error of the code
    """A file or folder that cannot be sent to a model; the message says why in one line."""


class BinaryError(Unreadable):
    """A file that is not text."""


def read_folder(
    folder: Path, *, shown: str, is_excluded: Callable[[str], bool], max_bytes: int = MAX_BYTES
) -> tuple[WorkspaceFile, ...]:
    """Read all files of a folder, without following links, sorted by name.

    Args:
        folder: The folder.
        shown: Its name in messages.
        is_excluded: Returns whether to leave out a file or folder of this relative name.
        max_bytes: Maximum size of all files together.

    Raises:
        Unreadable: There are too many files, or they are too large, or one cannot be read or has an
            odd name.
    """
    found: list[WorkspaceFile] = []
    left = max_bytes
    pending = [folder]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            name = path.relative_to(folder).as_posix()
            if is_excluded(name) or path.is_symlink():
                continue
            if path.is_dir():
                pending.append(path)
            elif path.is_file():
                if not is_safe_name(name):
                    raise Unreadable(f"{shown!r} contains a file with an unusable name: {name!r}")
                left -= path.stat().st_size
                if left < 0 or len(found) >= MAX_FILES:
                    limits = f"{max_bytes >> 20} MiB or {MAX_FILES:,} files"
                    raise Unreadable(
                        f"{shown!r} contains over {limits}: remove what it needs least"
                    )
                content = read_inside(folder, path, max_bytes, shown=name)
                found.append(WorkspaceFile.of(name, content))
    return tuple(sorted(found, key=lambda file: file.name))


def read_inside(root: Path, path: Path, max_bytes: int, *, shown: str) -> bytes:
    """Read one file.

    Raises:
        Unreadable: The file is missing, too large, outside ``root``, or cannot be read.
    """
    stay_inside(path, root, shown=shown)
    if not path.is_file():
        raise Unreadable(f"{shown!r} does not exist in the skill's folder")
    try:
        return read_file(path, max_bytes)
    except OSError as error:
        raise Unreadable(f"{shown!r} cannot be read: {error.strerror}") from None


def read_text_inside(root: Path, path: Path, *, shown: str) -> str:
    """Read one text file.

    Raises:
        BinaryError: The file is not UTF-8 text.
        Unreadable: The file is missing, too large, outside ``root``, or cannot be read.
    """
    file = WorkspaceFile.of(shown, read_inside(root, path, MAX_FILE_BYTES, shown=shown))
    if file.binary:
        raise BinaryError(f"{shown!r} is not UTF-8 text, and only text can be sent")
    return file.prompt


def stay_inside(path: Path, root: Path, *, shown: str) -> None:
    """Raise Unreadable if a path, named ``shown``, leads out of a folder."""
    if not is_inside(path, root):
        raise Unreadable(f"{shown!r} leads outside the skill's folder: copy it into that")


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
        before = error.object[: error.start].decode()
        byte = f"byte {error.start} (0x{error.object[error.start]:02x})"
        what = f"{byte} is not UTF-8: save the file as UTF-8"
        raise BadFile([Problem.in_text(before, len(before), what)]) from None


def start_of(path: Path) -> str:
    """Return the start of a file, "" if it cannot be read."""
    with suppress(OSError), open_regular(Path(os.path.realpath(path))) as file:
        return file.read(64 << 10).decode("utf-8", "replace")
    return ""
