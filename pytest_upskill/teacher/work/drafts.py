"""The folder of a teacher's command: sources, replies, candidates, and the decision."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_upskill.answers.workplace import WorkError
from pytest_upskill.repository.files import open_lock, write_file

_UNSAFE = re.compile(r"[^\w-]+")
_LONGEST_NAME = 64
_GITIGNORE = b"# Made by pytest-upskill: drafts hold answers of models and parts of sources.\n*\n"


class Drafts:
    """The folder of one command on one skill; repeating the command uses the same folder.

    Args:
        parent: ``.upskill/drafts`` of the project.
        name: The skill's name; "" if it has none yet.
        identity: The arguments and texts that must be equal for it to be the same command.
    """

    def __init__(self, parent: Path, name: str, *identity: str) -> None:
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:8]
        # The name comes from a SKILL.md, and must not lead out of the parent folder.
        safe_name = _UNSAFE.sub("-", name)[:_LONGEST_NAME]
        self.folder = parent / f"{safe_name or 'generated'}-{digest}"
        self._parent = parent
        self._lock = parent / f"{safe_name or self.folder.name}.lock"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the skill against other sessions.

        Raises:
            WorkError: Another session works on it.
            OSError: The folder cannot be written.
        """
        try:
            import fcntl  # not on Windows, where sessions have to be kept apart by hand
        except ImportError:
            yield
            return
        self._make_parent()
        # The system releases the lock when the process ends, however that happens.
        with open_lock(self._lock) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise WorkError(
                    "another session is working on this skill: wait until it ends"
                ) from None
            except OSError:
                pass  # a file system without locks
            yield

    def write(self, name: str, text: str) -> Path:
        """Write a file of the folder, and return its path.

        Raises:
            OSError: It cannot be written.
        """
        self._make_parent()
        file = self.folder / name
        write_file(file, text.encode("utf-8", "replace"))
        return file

    def _make_parent(self) -> None:
        ignore = self._parent / ".gitignore"
        if not ignore.exists():
            write_file(ignore, _GITIGNORE)
