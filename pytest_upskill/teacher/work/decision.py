"""The folder of a teacher's command: drafts, candidates, and the decision."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_upskill.repository.atomic_write import write_whole
from pytest_upskill.teacher.work.engine import TeacherError

_NO_NAME = re.compile(r"[^\w-]+")
_LONGEST_NAME = 64

Outcome = Literal["accepted", "not shown", "refused", "stopped"]

_GITIGNORE = b"# Made by pytest-upskill: drafts hold answers of models and parts of sources.\n*\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome of a command; the fields of ``decision.json``."""

    command: str
    decision: Outcome
    reason: str
    skill: str
    teacher: str
    students: tuple[str, ...] = ()
    look: int | None = None
    """Number of the look at the hold-out; None if it was not looked at."""
    p: float | None = None
    alpha: float | None = None
    train: tuple[str, ...] = ()
    """Ids of the cases that the version was chosen by."""
    holdout: tuple[str, ...] = ()
    """Ids of the cases that decided."""
    kept: tuple[str, ...] = ()
    """Ids of the cases that were kept or used."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Reasons by the id of a case that was dropped or left out."""
    candidates: tuple[Mapping[str, Any], ...] = ()
    """Versions of the skill that were tried: number, refusal or passes on the train cases."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Pass rates and lift on the held-out cases by student."""
    cost_usd: float = 0.0
    """What this process paid for; replayed answers cost nothing."""
    asked: int = 0
    """Answers that this process asked for."""
    applied: bool = False
    """Whether the skill's folder was changed."""


class Drafts:
    """The folder of one command on one skill; the same command writes to the same folder.

    Args:
        parent: ``.upskill/drafts`` of the project.
        name: The skill's name; "" if it has none yet.
        identity: What makes the command the same one.
    """

    def __init__(self, parent: Path, name: str, *identity: str) -> None:
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:8]
        # The name comes from a file, and a folder's may not lead elsewhere.
        named = _NO_NAME.sub("-", name)[:_LONGEST_NAME]
        self.folder = parent / f"{named or 'generated'}-{digest}"
        self._parent = parent
        self._lock = parent / f"{named or self.folder.name}.lock"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the skill against other sessions.

        Raises:
            TeacherError: Another one is at work on it.
            OSError: The folder cannot be written.
        """
        try:
            import fcntl  # not on Windows, where sessions have to be kept apart by hand
        except ImportError:
            yield
            return
        self._make_parent()
        # The system lets go of a lock when its process ends, however that happens.
        with self._lock.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TeacherError(
                    "another session is working on this skill: wait until it ends"
                ) from None
            except OSError:
                pass  # a file system without locks
            yield

    def write(self, name: str, text: str) -> Path:
        """Write a file of the folder whole, and return its path.

        Raises:
            OSError: It cannot be written.
        """
        self._make_parent()
        file = self.folder / name
        write_whole(file, text.encode("utf-8", "replace"))
        return file

    def _make_parent(self) -> None:
        ignore = self._parent / ".gitignore"
        if not ignore.exists():
            write_whole(ignore, _GITIGNORE)

    def decide(self, decision: Decision) -> None:
        """Write ``decision.json``.

        Raises:
            OSError: It cannot be written.
        """
        self.write(
            "decision.json", json.dumps(asdict(decision), indent=1, ensure_ascii=False) + "\n"
        )
