"""Transfer of answers from the pytest-xdist controller to its workers, through a folder."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from pytest_upskill.grading.grade import Answer
from pytest_upskill.repository.atomic_write import write_whole

_POLL_S = 0.01
_ANSWERS = TypeAdapter(list[Answer])


class StoppedError(Exception):
    """The controller has stopped: no more answers will come."""


class Handover:
    """Folder with one file for each trial's answers; each file appears complete.

    Args:
        folder: Folder that only the controller and its workers write to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = folder / "open"

    def start(self) -> None:
        """Mark the folder as open: answers will come."""
        self._open.touch()

    def give(self, key: str, answers: Sequence[Answer]) -> None:
        """Write a trial's answers for the worker that waits for them.

        Raises:
            OSError: The file cannot be written.
            ValueError: An answer cannot be written as JSON.
        """
        write_whole(self._folder / _name(key), _ANSWERS.dump_json([*answers]))

    def take(self, key: str) -> list[Answer]:
        """Wait for a trial's answers and return them.

        Raises:
            StoppedError: The controller has stopped without writing them.
        """
        file = self._folder / _name(key)
        while not file.exists():
            if not self._open.exists():
                raise StoppedError
            time.sleep(_POLL_S)
        return _ANSWERS.validate_json(file.read_bytes())

    def stop(self) -> None:
        """Mark the folder as closed: workers stop waiting."""
        # Deleting a file works on a full disk too.
        self._open.unlink(missing_ok=True)

    def want(self, trials: Mapping[str, str]) -> None:
        """Write which trials need answers: the node id of each, by its key."""
        write_whole(self._folder / "wanted", json.dumps(trials).encode())

    def wanted(self) -> dict[str, str]:
        """Return the node id of each trial that needs answers, by its key, in their order."""
        trials: dict[str, str] = json.loads((self._folder / "wanted").read_text("utf-8"))
        return trials


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]
