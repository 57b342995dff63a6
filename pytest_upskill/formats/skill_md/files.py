"""Text files of a skill's folder; links that lead out of it are refused."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

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


class OutsideError(Unreadable):
    """A path that leads out of the skill's folder."""


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
        OutsideError: A path leads out of both folders.
        Unreadable: A file is missing, too large, or not text, or there are over `MAX_FILES`.
    """
    homes = [root] if of_cases is None else [root, of_cases]
    path = root / name
    if not path.exists():
        others = [folder / name for folder in (beside, *beside.parents, *root.parents)]
        path = next((o for o in others if o.exists() and _home(o, homes)), path)
    home = _home(path, homes) or root
    if not path.is_dir():
        return {name: read_file(home, path, shown=name)}
    _stay_inside(path, home, shown=name)
    inner = {
        (PurePosixPath(name) / file.relative_to(path).as_posix()).as_posix(): file
        for file in sorted(path.rglob("*"))
        if not file.is_dir()
    }
    if len(inner) > MAX_FILES:
        raise Unreadable(f"{name!r} holds over {MAX_FILES} files")
    return {shown: read_file(home, file, shown=shown) for shown, file in inner.items()}


def leads_out(path: Path, root: Path | None) -> Path | None:
    """Return the target of a path if a symbolic link leads it out of its project, else None.

    A project is a git repository, or the folder ``root``. Links above the project are ignored.

    Args:
        path: An absolute path.
        root: Another folder that counts as a project; None for none.
    """
    for link in (path, *path.parents):
        if not link.is_symlink():
            continue
        above = link.parents
        tops = [top for top in above if top == root or (top / ".git").exists()]
        target = Path(os.path.realpath(path))
        if tops and not any(_is_inside(target, top) for top in tops):
            return target
    return None


def read_file(root: Path, path: Path, *, shown: str) -> str:
    """Read one text file.

    Raises:
        OutsideError: The file is not in ``root``.
        BinaryError: The file is not UTF-8 text.
        Unreadable: The file is missing, too large, or cannot be read.
    """
    _stay_inside(path, root, shown=shown)
    if not path.is_file():
        raise Unreadable(f"{shown!r} is not in the skill's folder")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise Unreadable(f"{shown!r} is larger than {MAX_FILE_BYTES >> 10} KiB")
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise Unreadable(f"{shown!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise BinaryError(f"{shown!r} is no UTF-8 text, and only text can be sent along")
    return text


def _stay_inside(path: Path, root: Path, *, shown: str) -> None:
    if not _is_inside(path, root):
        cure = "is an absolute path: name it from" if shown.startswith("/") else "leads out of"
        raise OutsideError(f"{shown!r} {cure} the skill's folder")


def _home(path: Path, homes: list[Path]) -> Path | None:
    return next((home for home in homes if _is_inside(path, home)), None)


def _is_inside(path: Path, root: Path) -> bool:
    # Unlike Path.resolve, realpath does not raise for a link to itself.
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
