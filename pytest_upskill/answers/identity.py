"""What identifies a recording: everything that is asked, where, and in which run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from pytest_upskill.checks.files import WorkspaceFile
from pytest_upskill.completion import Request, Tool, clean
from pytest_upskill.model import Model
from pytest_upskill.spending.caps import Caps

_LATEST = 256
"""Requests to know the names of: each is looked for, asked and recorded, and then seen no more."""


@lru_cache(maxsize=_LATEST)
def identity(request: Request, url: str) -> str:
    """Return a digest of a request, its host and its run: equal digests have one answer."""
    return hashlib.sha256(json.dumps(request_fields(request, url)).encode()).hexdigest()


@lru_cache(maxsize=_LATEST)
def request_fields(request: Request, url: str) -> Mapping[str, Any]:
    """Return everything that is sent, where to, and the run; without key, timeout and label."""
    fields: dict[str, Any] = {
        "model": address(request.model),
        "url": url,
        "frame": _digest(request.frame),
        "skill": _digest(request.skill),
        "user": lines_of(request.user),
        "max_tokens": request.max_tokens,
        "run": request.run,
    }
    # Absent where there are none, as in all recordings made before there were any.
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
            "caps": asdict(Caps()),
        }
        if task.chooses:
            others = {each.name: _digest_of(each.files) for each in task.neighbours}
            fields["catalogue"] = _digest(json.dumps([task.skill_name, others]))
    return fields


def address(model: Model) -> str:
    """Return the name of a model in recordings."""
    return f"{model.provider}:{model.name}"


@lru_cache(maxsize=8)  # The same few tools in every request.
def _digest_of_tools(tools: tuple[Tool, ...]) -> str:
    return _digest(json.dumps([asdict(tool) for tool in tools]))


def _digest_of(files: Collection[WorkspaceFile]) -> str:
    """Return the digest of names and contents of files, empty for none."""
    return _digest(json.dumps([asdict(file) for file in files])) if files else ""


@lru_cache(maxsize=256)  # The same few skills, again and again.
def _digest(text: str) -> str:
    """Return the digest of a text, empty for an empty text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() if text else ""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without lone surrogates, which cannot be sent or stored."""
    return clean(text).split("\n")
