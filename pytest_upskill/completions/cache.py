"""Recordings: completions stored on disk by request, so that nothing is paid for twice."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.completion import Completion, Request, clean
from pytest_upskill.completions import run_record
from pytest_upskill.repository.atomic_write import write_whole
from pytest_upskill.spending.caps import Caps
from pytest_upskill.wire.reasoning import without_reasoning

Mode = Literal["auto", "refresh", "replay", "off"]
MODES: tuple[Mode, ...] = ("auto", "refresh", "replay", "off")

_LATEST = 256
"""Requests to know the names of: each is looked for, asked and recorded, and then seen no more."""

_MOST_BYTES = 1 << 26
"""Of a recording: four times what a client accepts as a reply."""

_GITIGNORE = """\
# Made by pytest-upskill. To commit recordings, choose another folder: --upskill-cache-dir.
*
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The file of a recording, most important field first."""

    format: Literal[1] = 1
    subject: str
    """Whose answer it is: skill, case, model, arm and run, in the words of the node id."""
    recorded: str
    """When, as ISO 8601."""
    request: Mapping[str, Any]
    """What was asked, the system prompt by its digests."""
    completion: Mapping[str, Any]
    """The completion without its text."""
    text: tuple[str, ...]
    """Its lines: a changed answer is a readable diff."""
    reasoning: tuple[str, ...] = ()
    """The lines that the model wrote before it."""
    served: str = ""
    """The model that a custom host said it was serving; empty where it did not say."""


_RECORDING = TypeAdapter(Recording)
_COMPLETION = TypeAdapter(Completion)


class Cache:
    """A folder of recordings: one JSON file for each completion, named by a digest of the request.

    Any number of processes may read and write it at a time: a file appears whole or not at all.
    A file that is no recording is ignored, named in ``problems`` and asked for again.

    The host is part of what is asked: the methods take its ``url``, without credentials.

    Args:
        folder: Made when first written to.
        mode: ``auto`` reads and writes, ``refresh`` only writes, ``replay`` only reads, ``off``
            does neither.
        hidden: Whether git is to pass over the folder.
    """

    def __init__(self, folder: Path, mode: Mode, *, hidden: bool = False) -> None:
        self.folder = folder
        self.mode = mode
        self.problems: dict[str, None] = {}
        """One line for each recording that could not be read or written, in order."""
        self.served: dict[tuple[str, str], str] = {}
        """The model that custom hosts serve now, by URL and the name that is requested."""
        self._replaced = Counter[tuple[str, str, str, str]]()
        self._hidden = hidden  # until the first recording has seen to it

    def load(self, request: Request, url: str) -> Completion | None:
        """Read the recorded answer to a request."""
        if self.mode not in {"auto", "replay"}:
            return None
        file = self._file(request, url)
        try:
            most = _MOST_BYTES if request.task is None else run_record.MOST_BYTES
            recording = _RECORDING.validate_json(_read(file, most))
            if recording.request == _asked(request, url):
                self._compare(recording, url, request.model.name)
                return _completion(recording)
            problem = "a recording of another request"
        except FileNotFoundError:
            return None
        except OSError as error:
            problem = str(error.strerror)
        except run_record.UnsafeRecordError as error:
            problem = str(error)
        except ValidationError:
            problem = "not a recording"
        self.problems[f"{file}: ignored: {problem}"] = None
        return None

    def store(self, request: Request, url: str, completion: Completion, subject: str) -> None:
        """Write a recording; a disk error is reported and does not stop the run."""
        if self.mode not in {"auto", "refresh"}:
            return
        recorded = asdict(completion)
        del recorded["replayed"]
        if not completion.assistant_blocks:
            del recorded["assistant_blocks"]
        if completion.agent_run is None:
            del recorded["agent_run"]
        else:
            recorded["agent_run"] = run_record.packed(recorded["agent_run"])
        recording = Recording(
            subject=subject,
            recorded=datetime.now(UTC).isoformat(timespec="seconds"),
            request=_asked(request, url),
            text=tuple(_lines(recorded.pop("text"))),
            reasoning=tuple(_lines(reasoning)) if (reasoning := recorded.pop("reasoning")) else (),
            completion=recorded,
            served=self.served.get((url, request.model.name), ""),
        )
        data = _RECORDING.dump_json(recording, indent=1) + b"\n"
        try:
            self._hide()
            write_whole(self._file(request, url), data, mode=0o666)
        except OSError as error:
            self.problems[f"{self.folder}: cannot write recordings: {error.strerror}"] = None

    @property
    def replaced(self) -> list[str]:
        """Return a line for each model that was recorded where another is served now."""
        return [
            f"{url} serves {now} as {name!r} now, but {count} of the replayed answers are from "
            f"{then}: add --upskill-cache refresh to request them again"
            for (url, name, then, now), count in self._replaced.items()
        ]

    def _compare(self, recording: Recording, url: str, name: str) -> None:
        """Count a recording of another model than the one that is served now."""
        now = self.served.get((url, name))
        if now and recording.served and now != recording.served:
            self._replaced[url, name, recording.served, now] += 1

    def holds(self, request: Request, url: str) -> bool:
        """Check, without reading it, whether there is a recording that ``load`` could read."""
        return self.mode in {"auto", "replay"} and os.access(self._file(request, url), os.R_OK)

    def changes(self, subject: str, request: Request, url: str) -> list[str]:
        """Return what changed since ``subject`` was recorded; empty if it never was."""
        now = _asked(request, url)
        recorded = self._requests.get(subject, ())
        differences = (
            [key for key in {**then, **now} if then.get(key) != now.get(key)] for then in recorded
        )
        return min(differences, key=len, default=[])

    def unused(
        self, requests: Callable[[int], Iterable[tuple[Request, str]]]
    ) -> list[tuple[Path, Recording]]:
        """Return the recordings that belong to none of the requests.

        Args:
            requests: Returns those of a run, each with the URL that it goes to.
        """
        everything = list(self.recordings())
        runs = {recording.request.get("run", 0) for _, recording in everything}
        used = {self._file(request, url) for run in runs for request, url in requests(run)}
        return [(file, recording) for file, recording in everything if file not in used]

    def recordings(self, *, agents: bool = False) -> Iterator[tuple[Path, Recording]]:
        """Read every recording of the folder and skip other files.

        Args:
            agents: Whether to read the records of agents' runs too.
        """
        patterns = ("??/*.json", f"{run_record.FOLDER}/??/*.json")
        files = (sorted(self.folder.glob(pattern)) for pattern in patterns[: 1 + agents])
        for file in chain.from_iterable(files):
            with suppress(OSError, ValidationError):
                yield file, _RECORDING.validate_json(_read(file, _MOST_BYTES))

    @cached_property
    def _requests(self) -> Mapping[str, list[Mapping[str, Any]]]:
        """The request of each recorded subject."""
        requests = defaultdict(list)
        for _, recording in self.recordings(agents=True):
            requests[recording.subject].append(recording.request)
        return requests

    def _file(self, request: Request, url: str) -> Path:
        name = identity(request, url)
        folder = self.folder if request.task is None else self.folder / run_record.FOLDER
        return folder / f"{name[:2]}/{name[2:34]}.json"

    def _hide(self) -> None:
        if not self._hidden:
            return
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            write_whole(ignore, _GITIGNORE.encode())
        self._hidden = False


def _read(file: Path, most_bytes: int) -> bytes:
    """Read a recording's file of at most so many bytes.

    Raises:
        OSError: It cannot be read, or is larger than any recording.
    """
    with file.open("rb") as opened:
        data = opened.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, "too large for a recording")
    return data


def _completion(recording: Recording) -> Completion:
    """Read the completion of a recording; older versions may have reasoning in its text.

    Raises:
        ValidationError: It is none.
        UnsafeRecordError: It is of a run that no agent can have made.
    """
    told = {
        "text": "\n".join(recording.text),
        "reasoning": "\n".join(recording.reasoning),
        "replayed": True,
    }
    run = run_record.unpacked(recording.completion.get("agent_run"))
    fields = {**recording.completion, **told, "agent_run": run}
    completion = _COMPLETION.validate_python(fields)
    if completion.agent_run is not None:
        run_record.refuse_unsafe(completion.agent_run)
    return without_reasoning(completion)


@lru_cache(maxsize=_LATEST)
def identity(request: Request, url: str) -> str:
    """Return a digest of a request, its host and its run: equal digests have one answer."""
    return hashlib.sha256(json.dumps(_asked(request, url)).encode()).hexdigest()


@lru_cache(maxsize=_LATEST)
def _asked(request: Request, url: str) -> Mapping[str, Any]:
    """Return everything that is sent, where to, and the run; without key, timeout and label."""
    asked: dict[str, Any] = {
        "model": f"{request.model.provider}:{request.model.name}",
        "url": url,
        "frame": _digest(request.frame),
        "skill": _digest(request.skill),
        "user": _lines(request.user),
        "max_tokens": request.max_tokens,
        "run": request.run,
    }
    # Absent where there are none, as in all recordings made before there were any.
    if request.model.parameters:
        asked["parameters"] = list(request.model.parameters.entries)
    if request.tools:
        asked["tools"] = _digest(json.dumps([asdict(tool) for tool in request.tools]))
    if request.turns:
        asked["turns"] = [_digest(json.dumps(asdict(turn))) for turn in request.turns]
    if task := request.task:
        asked |= {
            "agent": request.model.agent,
            "workspace": _digest_of(task.workspace),
            "skill": _digest_of(task.skill),
            "max_turns": task.max_turns,
            "caps": asdict(Caps()),
        }
    return asked


def _digest_of(files: Collection[WorkspaceFile]) -> str:
    """Return the digest of names and contents of files, empty for none."""
    return _digest(json.dumps([asdict(file) for file in files])) if files else ""


@lru_cache(maxsize=256)  # The same few skills, again and again.
def _digest(text: str) -> str:
    """Return the digest of a text, empty for an empty text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() if text else ""


def _lines(text: str) -> list[str]:
    """Return the lines of a text without lone surrogates, which cannot be sent or stored."""
    return clean(text).split("\n")
