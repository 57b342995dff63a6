"""A recording: the request that it belongs to, and what its file contains."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic import TypeAdapter

from pytest_upskill.checks.files import MAX_BYTES, MAX_FILES, WorkspaceFile, is_safe_name
from pytest_upskill.models import AgentRun, Completion, Model, Request, RunLimits, Tool
from pytest_upskill.models.completion import clean


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
