"""Recordings: completions stored on disk by request, so that no answer is paid for twice."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from pytest_upskill.checks.files import MAX_BYTES, MAX_FILES, WorkspaceFile, is_safe_name
from pytest_upskill.models import AgentRun, Completion, Model, Request, RunLimits, Tool
from pytest_upskill.models.completion import Look, clean
from pytest_upskill.project.files import display_path, ignore_in_git, read_state, write_file
from pytest_upskill.project.grouping import grouped


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The content of a recording's file, most important field first."""

    format: Literal[1] = 1
    subject: str
    """Whose answer it is: skill, case, model, arm and run, in the words of the node id."""
    recorded: str
    """When, as ISO 8601."""
    request: Mapping[str, Any]
    """The fields that identify the request; the system prompt by its digests."""
    completion: Mapping[str, Any]
    """The completion without its text."""
    text: tuple[str, ...]
    """The lines of the answer, so that a changed answer is a readable diff."""
    reasoning: tuple[str, ...] = ()
    """The lines of the reasoning before it."""
    served: str = ""
    """The model that a custom host said it was serving; "" if it did not say."""


RECORDING = TypeAdapter(Recording)
_COMPLETION = TypeAdapter(Completion)


_RECENT = 256
"""Number of requests to keep: a request is looked up, sent and recorded within a short time."""


@lru_cache(maxsize=_RECENT)
def identity(request: Request, url: str) -> str:
    """Return a digest of a request, its host and its run: equal digests have one answer."""
    return hashlib.sha256(json.dumps(request_fields(request, url)).encode()).hexdigest()


def recording_name(request: Request, url: str) -> str:
    """Return the name of the recording of a request: two characters of it name a folder."""
    return identity(request, url)[:34]


@lru_cache(maxsize=_RECENT)
def request_fields(request: Request, url: str) -> Mapping[str, Any]:
    """Return everything that is sent, the URL and the run; without key, timeout and label."""
    fields: dict[str, Any] = {
        "model": address(request.model),
        "url": url,
        "frame": _digest(request.frame),
        "skill": _digest(request.skill),
        "user": lines_of(request.user),
        "max_tokens": request.max_tokens,
        "run": request.run,
    }
    # Left out where empty, so that recordings made before these fields existed are still found.
    if request.draw:
        fields["draw"] = request.draw
    if request.model.parameters:
        fields["parameters"] = list(request.model.parameters.entries)
    if request.tools:
        fields["tools"] = _digest_of(request.tools)
    if request.turns:
        fields["turns"] = [_digest(json.dumps(asdict(turn))) for turn in request.turns]
    if task := request.task:
        fields |= {
            "agent": request.model.agent,
            "workspace": _digest_of(task.workspace),
            "setup": _digest(json.dumps(asdict(task.setup))),
            "skill": _digest_of(task.skill),
            "max_turns": task.max_turns,
            "caps": asdict(RunLimits()),
        }
        if task.chooses:
            neighbours = {skill.name: _digest_of(skill.files) for skill in task.neighbours}
            fields["catalogue"] = _digest(json.dumps([task.skill_name, neighbours]))
    return fields


def address(model: Model) -> str:
    """Return the name of a model in recordings."""
    return f"{model.provider}:{model.name}"


@lru_cache(maxsize=64)  # Most requests have equal tools, and many runs the same files.
def _digest_of(parts: tuple[WorkspaceFile, ...] | tuple[Tool, ...]) -> str:
    """Return the digest of files or tools, "" for none."""
    return _digest(json.dumps([asdict(part) for part in parts])) if parts else ""


@lru_cache(maxsize=256)  # A run has few skills, and many requests with each.
def _digest(text: str) -> str:
    """Return the digest of a text, "" for an empty text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() if text else ""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without lone surrogates, which cannot be sent or stored."""
    return clean(text).split("\n")


AGENT_RUNS = "agent-runs"
"""Folder of run records in the folder of recordings; pruning leaves it alone."""


class UnsafeRecordError(ValueError):
    """A run record that no run can have left; the message says what it has."""


def _refuse_unsafe(run: AgentRun) -> None:
    """Refuse a record with file names outside the workspace, or with more than one can hold.

    Raises:
        UnsafeRecordError: The record is not one that a run can have left.
    """
    for files in (run.changed, run.edits, run.repository):
        names = [file.name for file in files]
        if not all(map(is_safe_name, (*names, *run.deleted))):
            raise UnsafeRecordError("has the name of a file outside the workspace")
        if len(set(names)) != len(names):
            raise UnsafeRecordError("has two files of one name")
        if len(names) > MAX_FILES or len(run.deleted) > MAX_FILES:
            raise UnsafeRecordError(f"has more than {MAX_FILES:,} files")
        try:
            size = sum(len(file.content) for file in files)
        except ValueError:  # no base64
            raise UnsafeRecordError("has a file that cannot be decoded") from None
        if size > MAX_BYTES:
            raise UnsafeRecordError(f"has more than {MAX_BYTES >> 20} MiB of files")


def recorded_fields(completion: Completion) -> dict[str, Any]:
    """Return the fields of a completion that a recording has under ``completion``."""
    fields = asdict(completion)
    del fields["text"], fields["reasoning"], fields["replayed"]
    if not completion.assistant_blocks:
        del fields["assistant_blocks"]
    if completion.agent_run is None:
        del fields["agent_run"]
    return fields


def completion_of(recording: Recording) -> Completion:
    """Return the completion of a recording.

    Raises:
        ValidationError: The recording has no valid completion.
        UnsafeRecordError: The completion is of a run that no agent can have made.
    """
    fields = {
        **recording.completion,
        "text": "\n".join(recording.text),
        "reasoning": "\n".join(recording.reasoning),
        "replayed": True,
    }
    completion = _COMPLETION.validate_python(fields)
    if completion.agent_run is not None:
        _refuse_unsafe(completion.agent_run)
    return completion


Mode = Literal["auto", "refresh", "replay", "off"]


class Cache:
    """A folder of recordings: one JSON file for each completion, named by a digest of the request.

    Any number of processes may read and write it at a time: a file appears whole or not at all.
    A file that is not a recording is ignored and named in ``problems``; its request is sent again.

    The host is part of the identity of a request: the methods take its URL, without credentials.

    Args:
        folder: Folder of the recordings, made with the first one.
        mode: ``auto`` reads and writes, ``refresh`` only writes, ``replay`` only reads, ``off``
            does neither.
        ignored_by_git: Whether to write a ``.gitignore`` for the folder.
    """

    def __init__(self, folder: Path, mode: Mode, *, ignored_by_git: bool = False) -> None:
        self.folder = folder
        self.shown = display_path(folder)
        """The folder in messages."""
        self.mode = mode
        self.is_read = mode in {"auto", "replay"}
        """Whether recorded answers are used."""
        self.problems: dict[str, None] = {}
        """One line for each recording that could not be read or written, in order."""
        self.served_models: dict[tuple[str, str], str] = {}
        """The model that custom hosts serve now, by URL and the name that is requested."""
        self.installed_agents: dict[str, str] = {}
        """The versions of agents that are installed now, by the prefix of their models."""
        self.record_command = ""
        """The command that records what a replay lacks."""
        self._replacements = Counter[tuple[str, str]]()
        """Number of replayed answers of each model, or version of an agent, that has been replaced:
        by what, and what was recorded."""
        self._ignored_by_git = ignored_by_git

    def load(self, request: Request, url: str) -> Completion | None:
        """Read the recorded answer to a request, None if it is not recorded."""
        found = self._recorded(request, url) if self.is_read else None
        if found is None:
            return None
        recording, completion = found
        self._note_replacements(recording, completion.agent_run, request.model, url)
        return completion

    def look(self, request: Request, url: str) -> Look | None:
        """Return the look that a recorded answer was requested for, None if it is not recorded."""
        found = self._recorded(request, url) if self.mode == "auto" else None
        return found[1].look if found else None

    def _recorded(self, request: Request, url: str) -> tuple[Recording, Completion] | None:
        """Read a recording; one that cannot be read is a problem."""
        file = self._file(request, url)
        try:
            recording = RECORDING.validate_json(read_state(file))
            if recording.request == request_fields(request, url):
                return recording, completion_of(recording)
            problem = "a recording of another request"
        except FileNotFoundError:
            return None
        except OSError as error:
            problem = str(error.strerror)
        except UnsafeRecordError as error:
            problem = str(error)
        except ValidationError:
            problem = "not a recording"
        self.problems[f"{display_path(file)}: ignored: {problem}"] = None
        return None

    def store(self, request: Request, url: str, completion: Completion, subject: str) -> None:
        """Write a recording; a disk error is reported and does not stop the run."""
        if self.mode not in {"auto", "refresh"}:
            return
        recording = Recording(
            subject=subject,
            recorded=datetime.now(UTC).isoformat(timespec="seconds"),
            request=request_fields(request, url),
            text=tuple(lines_of(completion.text)),
            reasoning=tuple(lines_of(completion.reasoning)) if completion.reasoning else (),
            completion=recorded_fields(completion),
            served=self.served_models.get((url, request.model.name), ""),
        )
        try:
            data = RECORDING.dump_json(recording, indent=1) + b"\n"
            if self._ignored_by_git:
                ignore_in_git(self.folder)
            write_file(self._file(request, url), data, mode=0o666)
        except OSError as error:
            self.problems[f"{self.shown}: cannot write recordings: {error.strerror}"] = None
        except ValueError as error:  # such as a text that is not Unicode
            problem = f"cannot record an answer: {type(error).__name__}"
            self.problems[f"{self.shown}: {problem}"] = None

    @property
    def replacement_lines(self) -> list[str]:
        """Return a line for each model, or version of an agent, that has been replaced since."""
        cure = "add --upskill-cache refresh to request them again"
        return [
            f"{now} {count} of the replayed {then}: {cure}"
            for (now, then), count in self._replacements.items()
        ]

    def _note_replacements(
        self, recording: Recording, run: AgentRun | None, model: Model, url: str
    ) -> None:
        """Count a recording if its model, or version of an agent, has been replaced since."""
        served = self.served_models.get((url, model.name))
        if served and recording.served and served != recording.served:
            now = f"{url} serves {served} as {model.name!r} now, but"
            self._replacements[now, f"answers are from {recording.served}"] += 1
        installed = self.installed_agents.get(model.agent)
        if run is not None and installed and run.version != installed:
            now = f"{model.agent} {installed} is installed, and"
            self._replacements[now, f"runs are by {run.version}"] += 1

    def holds(self, request: Request, url: str) -> bool:
        """Check whether there is a recording that ``load`` could read, without reading it."""
        return self.is_read and os.access(self._file(request, url), os.R_OK)

    def changed_fields(self, subject: str, request: Request, url: str) -> list[str]:
        """Return the fields that differ in the most similar request recorded for ``subject``.

        A URL is named as it was recorded. The list is empty if nothing was recorded for it.
        """
        new = request_fields(request, url)
        # What a model chooses from stands in the place of a skill.
        words = {"user": "question"} | ({"skill": "catalogue"} if request.tools else {})
        differences = (
            [
                f"url {old['url']}" if name == "url" else words.get(name, name)
                for name in {**old, **new}
                if old.get(name) != new.get(name)
            ]
            for old in self._requests.get(subject, ())
        )
        return min(differences, key=len, default=[])

    def unused(
        self, requests: Callable[[int], Iterable[tuple[Request, str]]]
    ) -> list[tuple[Path, Recording]]:
        """Return the recordings that belong to none of the requests.

        Args:
            requests: Returns the requests of a run by its index, each with the URL of its host.
        """
        recordings = list(self.recordings())
        runs = {recording.request.get("run", 0) for _, recording in recordings}
        used = {self._file(request, url) for run in runs for request, url in requests(run)}
        return [(file, recording) for file, recording in recordings if file not in used]

    def recordings(self, *, agents: bool = False) -> Iterator[tuple[Path, Recording]]:
        """Read every recording of the folder and skip other files.

        Args:
            agents: Whether to read the records of agents' runs too.
        """
        files = sorted(self.folder.glob("??/*.json"))
        if agents:
            files += sorted(self.folder.glob(f"{AGENT_RUNS}/??/*.json"))
        for file in files:
            with suppress(OSError, ValidationError):
                yield file, RECORDING.validate_json(read_state(file))

    @cached_property
    def past(self) -> list[tuple[Mapping[str, Any], Completion]]:
        """Recorded requests with their completions, a sample if there are many."""
        pairs = []
        # Files are named at random: these tell what others may cost.
        for _, recording in islice(self.recordings(agents=True), 1000):
            with suppress(ValidationError, UnsafeRecordError):
                pairs.append((recording.request, completion_of(recording)))
        return pairs

    @cached_property
    def _requests(self) -> Mapping[str, list[Mapping[str, Any]]]:
        """The request of each recorded subject."""
        recordings = self.recordings(agents=True)
        return grouped((recording.subject, recording.request) for _, recording in recordings)

    def _file(self, request: Request, url: str) -> Path:
        name = recording_name(request, url)
        folder = self.folder if request.task is None else self.folder / AGENT_RUNS
        return folder / f"{name[:2]}/{name[2:]}.json"
