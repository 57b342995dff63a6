"""The identity of a recording: everything that is sent, to which host, and in which run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from pytest_upskill.answers.run_limits import RunLimits
from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.models import Model, Request, Tool, clean

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
        fields["tools"] = _digest_of_tools(request.tools)
    if request.turns:
        fields["turns"] = [_digest(json.dumps(asdict(turn))) for turn in request.turns]
    if task := request.task:
        fields |= {
            "agent": request.model.agent,
            "workspace": _digest_of(task.workspace),
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


@lru_cache(maxsize=8)  # Most requests have equal tools.
def _digest_of_tools(tools: tuple[Tool, ...]) -> str:
    return _digest(json.dumps([asdict(tool) for tool in tools]))


def _digest_of(files: Collection[WorkspaceFile]) -> str:
    """Return the digest of names and contents of files, "" for none."""
    return _digest(json.dumps([asdict(file) for file in files])) if files else ""


@lru_cache(maxsize=256)  # A run has few skills, and many requests with each.
def _digest(text: str) -> str:
    """Return the digest of a text, "" for an empty text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() if text else ""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without lone surrogates, which cannot be sent or stored."""
    return clean(text).split("\n")
