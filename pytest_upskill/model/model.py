"""A model, and the URL of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlsplit

from pytest_upskill.model.hosts import WireFormat

AGENTS: Mapping[str, WireFormat | None] = MappingProxyType(
    {"loop": None, "claude-code": "anthropic", "codex": "openai"}
)
"""Agents, each with the wire format that it speaks; None for any."""


class ModelError(ValueError):
    """An invalid model specification; the message says how to write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model to run the cases on."""

    label: str
    """Short name in node ids and reports, unique in a run."""
    provider: str
    """The prefix of a known host, ``offline``, or a provider that a plugin's hook serves."""
    name: str
    """The id that is sent to the API, unchanged."""
    base_url: str | None = None
    """Base URL without credentials; None for the provider's own host on the internet."""
    userinfo: str = field(default="", repr=False)
    """``user:password`` from the base URL; "" if there is none."""
    agent: str = ""
    """The agent that uses the model, a key of `AGENTS`; "" for single requests."""

    @property
    def resolved(self) -> str:
        """``agent:provider:name@host``, without credentials, for reports."""
        name = f"{self.provider}:{self.name}"
        if self.agent:
            name = f"{self.agent}:{name}"
        return name if self.base_url is None else f"{name}@{urlsplit(self.base_url).netloc}"


def server(url: str) -> str:
    """Check the URL of a server, and return it without trailing slashes.

    Raises:
        ValueError: The URL is invalid; the message is a predicate, such as ``has no host``.
    """
    if any(map(str.isspace, url)):
        raise ValueError("has a space in it")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("has an invalid host or port") from None
    if parts.scheme not in {"http", "https"}:
        raise ValueError("does not begin with http:// or https://")
    if not host:
        raise ValueError("has no host")
    if parts.query or parts.fragment:
        raise ValueError("has a query or a fragment: remove it")
    return url.rstrip("/")
