"""A folder through which one process hands answers to others."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from pytest_upskill.atomic_write import write_whole
from pytest_upskill.grading.grade import Answer

_POLL_S = 0.01
_ANSWERS = TypeAdapter(list[Answer])


class StoppedError(Exception):
    """The giving process has stopped: nothing more will come."""


class Handover:
    """One file for each trial's answers, whole from the moment it can be seen.

    Args:
        folder: Where; both sides know it, nobody else writes to it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = folder / "open"

    def start(self) -> None:
        """Tell whoever waits that something will come."""
        self._open.touch()

    def give(self, nodeid: str, answers: Sequence[Answer]) -> None:
        """Put a trial's answers where a worker waits for them."""
        write_whole(self._folder / _name(nodeid), _ANSWERS.dump_json([*answers]))

    def take(self, nodeid: str) -> list[Answer]:
        """Wait for a trial's answers.

        Raises:
            StoppedError: They will not come.
        """
        file = self._folder / _name(nodeid)
        while not file.exists():
            if not self._open.exists():
                raise StoppedError
            time.sleep(_POLL_S)
        return _ANSWERS.validate_json(file.read_bytes())

    def stop(self) -> None:
        """Tell whoever waits that nothing more will come."""
        # Deleting works on a full disk too.
        self._open.unlink(missing_ok=True)

    def want(self, nodeids: Iterable[str]) -> None:
        """Say which trials will need answers."""
        write_whole(self._folder / "wanted", json.dumps(list(nodeids)).encode())

    def wanted(self) -> list[str]:
        """Return the trials that will need answers, in the order of their items."""
        nodeids: list[str] = json.loads((self._folder / "wanted").read_text("utf-8"))
        return nodeids


def _name(nodeid: str) -> str:
    return hashlib.sha256(nodeid.encode()).hexdigest()[:32]
