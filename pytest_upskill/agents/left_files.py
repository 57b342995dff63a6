"""Read the files that a program left in a folder, without following links."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_upskill.checks.files import MAX_BYTES, MAX_FILES, WorkspaceFile, is_safe_name
from pytest_upskill.models import AgentRun, Request
from pytest_upskill.project.files import open_regular
from pytest_upskill.sandbox.disk_usage import entries_below

_MAX_ENTRIES = 20_000
"""Maximum number of files, folders and others that are looked at."""


class TooMuchLeft(Exception):  # noqa: N818  a miss of the agent, not an error of this program
    """The folder contains more than a record may hold; the message says what."""


def read_left_files(folder: Path) -> dict[str, WorkspaceFile]:
    """Return the regular files below a folder by name; the program that wrote them must have ended.

    Links, pipes and other special files are left out, and so are names that no record may have.

    Raises:
        TooMuchLeft: There are more than `MAX_FILES` or more than `MAX_BYTES`.
    """
    files: dict[str, WorkspaceFile] = {}
    bytes_left = MAX_BYTES
    for name, path in _files(folder):
        if len(files) >= MAX_FILES:
            raise TooMuchLeft(f"it left more than {MAX_FILES:,} files in the workspace")
        content = _read(path, bytes_left)
        if content is None:
            continue
        bytes_left -= len(content)
        if bytes_left < 0:
            raise TooMuchLeft(f"it left more than {MAX_BYTES >> 20} MiB in the workspace")
        files[name] = WorkspaceFile.of(name, content)
    return files


def with_left_files(run: AgentRun, request: Request, folder: Path) -> AgentRun:
    """Return the record of a run with the files that it changed and deleted in its workspace.

    More files than a record may hold are a limit that the run has reached.

    Args:
        run: The record without the files.
        request: The request of the run.
        folder: The workspace.
    """
    assert request.task is not None
    before = {file.name: file for file in request.task.workspace}
    try:
        after = read_left_files(folder)
    except TooMuchLeft as error:
        return replace(run, limit=run.limit or str(error))
    return replace(
        run,
        changed=tuple(file for name, file in after.items() if before.get(name) != file),
        deleted=tuple(name for name in before if name not in after),
    )


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of everything but folders: a folder's files before its subfolders'."""
    paths = []
    for number, entry in enumerate(entries_below(str(folder)), 1):
        if number > _MAX_ENTRIES:
            raise TooMuchLeft(f"it left more than {_MAX_ENTRIES:,} entries in the workspace")
        if not entry.is_dir(follow_symlinks=False):
            paths.append(Path(entry.path))
    for path in sorted(
        paths, key=lambda path: (*((1, part) for part in path.parts[:-1]), (0, path.name))
    ):
        name = path.relative_to(folder).as_posix()
        if is_safe_name(name):
            yield name, path


def _read(path: Path, max_bytes: int) -> bytes | None:
    """Return the content of a regular file, None for a link or special file.

    Args:
        path: The file.
        max_bytes: One byte more than this is read, so that the caller sees that there is more.
    """
    with suppress(OSError), open_regular(path) as file:
        return file.read(max_bytes + 1)
    return None
