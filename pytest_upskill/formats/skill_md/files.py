"""Text files of a skill's folder, which nothing outside of it gets into."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

MAX_FILE_BYTES = 128 << 10
"""Size of one file that a model may be given."""

MAX_TOTAL_BYTES = 256 << 10
"""Size of all files together that a model may be given with a case, or with a skill."""

MAX_FILES = 100
"""Files of a folder that a model may be given."""


class Unreadable(Exception):  # noqa: N818  a reason to leave a file out, not an error of the code
    """A file that no model can be given; the message says why."""


class BinaryError(Unreadable):
    """A file that is no text."""


class OutsideError(Unreadable):
    """A path that leads out of the skill's folder."""


def read_files(
    root: Path, name: str, *, beside: Path, of_cases: Path | None = None
) -> dict[str, str]:
    """Read the file that a case names, or all files of a folder.

    Args:
        root: The skill's folder.
        name: A path relative to it.
        beside: Folder of the case file, where what the skill's folder has not is looked for; then
            it is looked for from the folders above, as the name may start at the repository's top.
        of_cases: Folder of the cases, where it is not in the skill's; what is in it can be read
            too.

    Returns:
        Name to text, in the order of the names.

    Raises:
        OutsideError: A path leads out of both folders.
        Unreadable: A file is missing, no text, or too large.
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
    """Tell where a link on the way to a path leads out of its project; None where none does.

    A project is a git repository, or a folder. Links above it are the machine's own.

    Args:
        path: An absolute path.
        root: A folder that is a project, whatever it is in; None for none.
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
        OutsideError: It is not in ``root``.
        BinaryError: It is no text.
        Unreadable: It is missing or too large.
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
    # Unlike Path.resolve, realpath takes a link to itself for a name that is not there.
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
