"""Recordings: completions kept on disk by what was asked, so that nothing is paid for twice."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.completion import Completion, Request
from pytest_upskill.models import Model

Mode = Literal["auto", "refresh", "replay", "off"]
MODES: tuple[Mode, ...] = ("auto", "refresh", "replay", "off")

_FORMAT = 1
_COMPLETION = TypeAdapter(Completion)


class Cache:
    """A folder of recordings, one JSON file for each completion.

    Any number of processes may read and write it at a time: a file appears whole or not at all.
    A file that cannot be read is ignored and named in ``problems``, and asked for again.

    Args:
        folder: Made when first written to.
        mode: ``auto`` reads and writes, ``refresh`` only writes, ``replay`` only reads, ``off``
            does neither.
    """

    def __init__(self, folder: Path, mode: Mode) -> None:
        self.folder = folder
        self.mode = mode
        self.problems: dict[str, None] = {}
        """One line for each recording that could not be read or written, in order."""

    def load(self, request: Request) -> Completion | None:
        """Find the recorded answer to ``request``."""
        if self.mode not in {"auto", "replay"}:
            return None
        file = self._file(request)
        try:
            recording = json.loads(file.read_bytes())
            completion = recording["completion"] | {"replayed": True}
            completion["text"] = "\n".join(completion["text"])
            return _COMPLETION.validate_python(completion)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError, ValidationError) as error:
            self.problems[f"{file}: not a recording, ignored ({type(error).__name__})"] = None
            return None

    def store(self, request: Request, completion: Completion, subject: str) -> None:
        """Record an answer; where the disk refuses it, the run goes on without.

        Args:
            request: What was asked.
            completion: The answer.
            subject: Whose answer it is, for readers and ``stale``.
        """
        if self.mode not in {"auto", "refresh"}:
            return
        recording = {
            "format": _FORMAT,
            "subject": subject,
            "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
            "request": _summary(request),
            # Lines of their own: a changed answer is a readable diff.
            "completion": asdict(completion) | {"text": completion.text.split("\n")},
        }
        try:
            _write(self._file(request), json.dumps(recording, indent=1) + "\n")
        except OSError as error:
            self.problems[f"{self.folder}: cannot record: {error.strerror}"] = None

    def holds(self, request: Request) -> bool:
        """Tell, without reading it, whether there is a recording that ``load`` would try."""
        return self.mode in {"auto", "replay"} and self._file(request).exists()

    def has_stale(self, subject: str) -> bool:
        """Tell whether something else was once recorded for ``subject``."""
        return subject in self._subjects

    @cached_property
    def _subjects(self) -> frozenset[str]:
        return frozenset(str(recording["subject"]) for _, recording in self.recordings())

    def recordings(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Read every recording of the folder, whoever it is for; pass over other files."""
        for file in sorted(self.folder.glob("??/*.json")):
            with suppress(OSError, ValueError):
                recording = json.loads(file.read_bytes())
                if isinstance(recording, dict) and "subject" in recording:
                    yield file, recording

    def _file(self, request: Request) -> Path:
        name = hashlib.sha256(json.dumps(_identity(request)).encode()).hexdigest()
        return self.folder / name[:2] / f"{name[2:34]}.json"


def _identity(request: Request) -> dict[str, object]:
    """Name everything that is sent and the run, but no key, time limit or label."""
    return {
        "format": _FORMAT,
        "model": _model(request.model),
        "frame": request.frame,
        "skill": request.skill,
        "user": request.user,
        "max_tokens": request.max_tokens,
        "run": request.run,
    }


def _summary(request: Request) -> dict[str, object]:
    """Say what was asked, for a reader; the system prompt by its digest."""
    return {
        "model": _model(request.model),
        "system_sha256": hashlib.sha256(request.system.encode()).hexdigest(),
        "user": request.user.split("\n"),
        "max_tokens": request.max_tokens,
        "run": request.run,
    }


def _model(model: Model) -> str:
    """Name a model with the whole address of its server, without credentials."""
    if model.base_url is None:
        return f"{model.provider}:{model.name}"
    url = urlsplit(model.base_url)
    bare = url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
    return f"{model.provider}:{model.name}@{bare}"


def _write(file: Path, text: str) -> None:
    """Write at once or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(temporary).replace(file)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
