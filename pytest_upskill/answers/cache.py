"""Recordings: completions stored on disk by request, so that nothing is paid for twice."""

from __future__ import annotations

import errno
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.answers import run_record
from pytest_upskill.answers.identity import address, identity, lines_of, request_fields
from pytest_upskill.completion import AgentRun, Completion, Request
from pytest_upskill.model import Model
from pytest_upskill.repository.atomic_write import write_whole
from pytest_upskill.wire.reasoning import without_reasoning

Mode = Literal["auto", "refresh", "replay", "off"]
MODES: tuple[Mode, ...] = ("auto", "refresh", "replay", "off")

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


class AgentRuns(NamedTuple):
    """Recorded runs of an agent."""

    answers: list[Completion]
    choices: list[Completion]
    """Runs in which the model chose among skills, which end early."""


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
        self.served_models: dict[tuple[str, str], str] = {}
        """The model that custom hosts serve now, by URL and the name that is requested."""
        self.installed: dict[str, str] = {}
        """The versions of agents that are installed now, by the prefix of their models."""
        self._outdated = Counter[tuple[str, str, str]]()
        self._ahead: dict[tuple[Request, str], Completion] = {}
        self._hidden = hidden  # until the first recording has seen to it

    def load_ahead(self, request: Request, url: str) -> Completion | None:
        """Read a recorded answer that will be loaded once more, and keep it until then."""
        completion = self.load(request, url)
        if completion is not None:
            self._ahead[request, url] = completion
        return completion

    def load(self, request: Request, url: str) -> Completion | None:
        """Read the recorded answer to a request."""
        if self.mode not in {"auto", "replay"}:
            return None
        if self._ahead and (read := self._ahead.pop((request, url), None)) is not None:
            return read
        file = self._file(request, url)
        try:
            most = _MOST_BYTES if request.task is None else run_record.MOST_BYTES
            recording = _RECORDING.validate_json(_read(file, most))
            if recording.request == request_fields(request, url):
                completion = _completion(recording)
                self._compare(recording, completion.agent_run, request.model, url)
                return completion
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
            recorded["agent_run"] = run_record.pack_run(recorded["agent_run"])
        recording = Recording(
            subject=subject,
            recorded=datetime.now(UTC).isoformat(timespec="seconds"),
            request=request_fields(request, url),
            text=tuple(lines_of(recorded.pop("text"))),
            reasoning=tuple(lines_of(reasoning))
            if (reasoning := recorded.pop("reasoning"))
            else (),
            completion=recorded,
            served=self.served_models.get((url, request.model.name), ""),
        )
        try:
            data = _RECORDING.dump_json(recording, indent=1) + b"\n"
            self._write_gitignore()
            write_whole(self._file(request, url), data, mode=0o666)
        except OSError as error:
            self.problems[f"{self.folder}: cannot write recordings: {error.strerror}"] = None
        except ValueError as error:  # such as a text that is not Unicode
            what = f"cannot record an answer: {type(error).__name__}"
            self.problems[f"{self.folder}: {what}"] = None

    @property
    def replaced(self) -> list[str]:
        """Return a line for each model, or version of an agent, that has been replaced since."""
        refresh = "add --upskill-cache refresh to"
        return [
            f"{now} {count} of the replayed {then}: {refresh} {again}"
            for (now, then, again), count in self._outdated.items()
        ]

    def _compare(self, recording: Recording, run: AgentRun | None, model: Model, url: str) -> None:
        """Count a recording of another model, or version of an agent, than there is now."""
        served = self.served_models.get((url, model.name))
        if served and recording.served and served != recording.served:
            now, then = f"{url} serves {served} as {model.name!r} now, but", recording.served
            self._outdated[now, f"answers are from {then}", "request them again"] += 1
        installed = self.installed.get(model.agent)
        if run is not None and installed and run.version != installed:
            now, then = f"{model.agent} {installed} is installed, and", run.version
            self._outdated[now, f"runs are by {then}", "run them again"] += 1

    def holds(self, request: Request, url: str) -> bool:
        """Check whether there is a recording that ``load`` could read, without reading it."""
        return self.mode in {"auto", "replay"} and os.access(self._file(request, url), os.R_OK)

    def changes(self, subject: str, request: Request, url: str) -> list[str]:
        """Return what changed since ``subject`` was recorded; empty if it never was."""
        now = request_fields(request, url)
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

    def agent_runs(self, model: Model, url: str) -> AgentRuns:
        """Read the recorded runs of a model's agent, of whatever skills and cases."""
        runs = AgentRuns([], [])
        agent = {"agent": model.agent, "model": address(model), "url": url}
        for _, recording in self.recordings(agents=True):
            if agent.items() <= dict(recording.request).items():
                kind = runs.choices if "catalogue" in recording.request else runs.answers
                with suppress(ValidationError, run_record.UnsafeRecordError):
                    kind.append(_completion(recording))
        return runs

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

    def _write_gitignore(self) -> None:
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
        # Python reserves as much memory as it is told to read at most.
        size = os.fstat(opened.fileno()).st_size
        if size > most_bytes:
            raise OSError(errno.EFBIG, "too large for a recording")
        return opened.read(size)


def _completion(recording: Recording) -> Completion:
    """Read the completion of a recording; older versions may have reasoning in its text.

    Raises:
        ValidationError: It is none.
        UnsafeRecordError: It is of a run that no agent can have made.
    """
    read_fields = {
        "text": "\n".join(recording.text),
        "reasoning": "\n".join(recording.reasoning),
        "replayed": True,
    }
    run = run_record.unpack_run(recording.completion.get("agent_run"))
    fields = {**recording.completion, **read_fields, "agent_run": run}
    completion = _COMPLETION.validate_python(fields)
    if completion.agent_run is not None:
        run_record.refuse_unsafe(completion.agent_run)
    return without_reasoning(completion)
