"""Text files of a skill's folder; links that lead out of it are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

from pytest_upskill.checks.files import MAX_BYTES, WorkspaceFile, is_safe_name
from pytest_upskill.checks.files import MAX_FILES as WORKSPACE_FILES
from pytest_upskill.repository.files import is_inside, read_file

MAX_FILE_BYTES = 128 << 10
"""Maximum size of a file that is sent to a model."""

MAX_TOTAL_BYTES = 256 << 10
"""Maximum total size of the files that are sent with a case, or with a skill."""

MAX_FILES = 100
"""Maximum number of files in a folder that is sent to a model."""


class Unreadable(Exception):  # noqa: N818  a reason to leave a file out, not an error of the code
    """A file that cannot be sent to a model; the message says why."""


class BinaryError(Unreadable):
    """A file that is not text."""


def read_files(
    root: Path, name: str, *, beside: Path, of_cases: Path | None = None
) -> dict[str, str]:
    """Read the file or all files of the folder that a case names.

    Args:
        root: The skill's folder.
        name: A path relative to ``root``. If it does not exist there, it is tried relative to
            ``beside``, then to the folders above ``beside`` and ``root``.
        beside: Folder of the case file.
        of_cases: Folder of the cases if it is outside ``root``; its files can be read too.

    Returns:
        Maps names to texts, sorted by name.

    Raises:
        Unreadable: A file is missing, too large, not text or outside both folders, or there are
            over `MAX_FILES`.
    """
    homes = [root] if of_cases is None else [root, of_cases]
    path = root / name
    if not path.exists():
        for folder in (beside, *beside.parents, *root.parents):
            if (folder / name).exists() and _enclosing_folder(folder / name, homes):
                path = folder / name
                break
    home = _enclosing_folder(path, homes) or root
    if not path.is_dir():
        return {name: read_text_inside(home, path, shown=name)}
    _stay_inside(path, home, shown=name)
    inner = {
        (PurePosixPath(name) / file.relative_to(path).as_posix()).as_posix(): file
        for file in sorted(path.rglob("*"))
        if not file.is_dir()
    }
    if len(inner) > MAX_FILES:
        raise Unreadable(f"{name!r} contains over {MAX_FILES} files")
    return {shown: read_text_inside(home, file, shown=shown) for shown, file in inner.items()}


def read_workspace(root: Path, name: str) -> tuple[WorkspaceFile, ...]:
    """Read the folder that a case names as the workspace of agents.

    Args:
        root: The folder of the case file.
        name: A path relative to it.

    Raises:
        ValueError: It is no folder inside ``root``, or it holds what a workspace must not.
    """
    folder = root / name
    if not is_inside(folder, root):
        raise ValueError(f"{name!r} leads outside the folder of the case file: move it inside")
    if not folder.is_dir():
        raise ValueError(f"{name!r} is not a folder beside the case file")
    found = read_folder(folder)
    if not found:
        raise ValueError(f"{name!r} contains no files")
    return found


def read_folder(
    folder: Path, *, is_excluded: Callable[[str], bool] = lambda _: False
) -> tuple[WorkspaceFile, ...]:
    """Read all files of a folder, without following links, sorted by name.

    Args:
        folder: The folder.
        is_excluded: Returns whether to leave out a file or folder of this relative name.

    Raises:
        ValueError: There are too many files, or they are too large, or one has an odd name; the
            message is one line.
    """
    found: list[WorkspaceFile] = []
    size = 0
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
                    raise ValueError(
                        f"{folder.name!r} contains a file whose name cannot be used: {name!r}"
                    )
                size += path.stat().st_size
                if size > MAX_BYTES or len(found) >= WORKSPACE_FILES:
                    raise ValueError(
                        f"{folder.name!r} contains over {MAX_BYTES >> 20} MiB or "
                        f"{WORKSPACE_FILES:,} files"
                    )
                found.append(WorkspaceFile.of(name, read_file(path, MAX_BYTES)))
    return tuple(sorted(found, key=lambda file: file.name))


def read_text_inside(root: Path, path: Path, *, shown: str) -> str:
    """Read one text file.

    Raises:
        BinaryError: The file is not UTF-8 text.
        Unreadable: The file is missing, too large, outside ``root``, or cannot be read.
    """
    _stay_inside(path, root, shown=shown)
    if not path.is_file():
        raise Unreadable(f"{shown!r} is not in the skill's folder")
    try:
        text = read_file(path, MAX_FILE_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise Unreadable(f"{shown!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise BinaryError(f"{shown!r} is not UTF-8 text, and only text can be sent")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _stay_inside(path: Path, root: Path, *, shown: str) -> None:
    if not is_inside(path, root):
        what = "leads outside"
        if shown.startswith("/"):
            what = "is an absolute path: write it relative to"
        raise Unreadable(f"{shown!r} {what} the skill's folder")


def _enclosing_folder(path: Path, homes: list[Path]) -> Path | None:
    return next((home for home in homes if is_inside(path, home)), None)
