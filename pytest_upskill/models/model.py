"""A model, and the URL of a server."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from pytest_upskill.models.hosts import BY_NETLOC, BY_PREFIX, PLATFORMS, KnownHost
from pytest_upskill.models.parameters import Parameters
from pytest_upskill.models.streams import AgentFormat

FORMATS: Mapping[AgentFormat, str] = {
    "messages": "anthropic",
    "responses": "openai",
    "generateContent": "gemini",
}
"""The formats of programs that are agents, each with the vendor whose format it is."""

AGENTS: Mapping[str, tuple[AgentFormat, ...]] = {
    "loop": (),
    "claude-code": ("messages",),
    "codex": ("responses",),
    "pi": ("messages", "responses"),
    "opencode": ("messages", "responses"),
    "copilot": ("messages", "responses"),
    "gemini-cli": ("generateContent",),
}
"""The formats that each agent speaks, the usual one first; none for ``loop``, our own."""


class ModelError(ValueError):
    """An invalid model specification; the message says how to write it."""


_OFFLINE = "offline"

_REQUEST_PATH = re.compile(r"(/chat/completions|/completions|/messages|/api/chat|/api/generate)/*$")
"""Ends of paths that belong to requests: clients append them to the URL of a server."""


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
    parameters: Parameters = field(default_factory=Parameters)
    """Parameters of every request, identical in all arms."""
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers of its requests, each with the environment variable of its value."""
    agent: str = ""
    """The agent that uses the model, a key of `AGENTS`; "" for single requests."""

    @property
    def address(self) -> str:
        """``agent:provider:name@host``, without credentials."""
        name = f"{self.provider}:{self.name}"
        if self.agent:
            name = f"{self.agent}:{name}"
        return name if self.base_url is None else f"{name}@{urlsplit(self.base_url).netloc}"

    @property
    def is_language_model(self) -> bool:
        """Whether it is one: ``offline`` quotes its context, and is free."""
        return self.provider != _OFFLINE

    @property
    def runs_program(self) -> bool:
        """Whether its agent is an installed program, unlike ``loop``."""
        return bool(AGENTS.get(self.agent))

    @property
    def agent_format(self) -> AgentFormat | None:
        """The format in which its agent's program speaks to its host; None if they share none."""
        host = BY_PREFIX.get(self.provider)
        if host is None or host.prefix in PLATFORMS:
            return None
        for spoken in AGENTS[self.agent]:
            vendor = BY_PREFIX[FORMATS[spoken]]
            # Many speak the formats of Anthropic and OpenAI, and only Google its own.
            if host == vendor or (host.wire == vendor.wire and spoken != "generateContent"):
                return spoken
        return None

    @property
    def resolved(self) -> str:
        """The address and the parameters, for reports: everything that distinguishes two models."""
        return f"{self.address} {self.parameters}" if self.parameters else self.address

    @property
    def vendor(self) -> KnownHost | None:
        """The vendor whose host serves the model, None for any other host."""
        host = BY_PREFIX.get(self.provider)
        if host is None:
            return None
        url = urlsplit(self.base_url or host.url)
        if url.scheme != "https" or self.userinfo:
            # The server may not be the vendor's.
            return None
        netloc = url.netloc.lower()
        return host if netloc.endswith(host.domains) else BY_NETLOC.get(netloc)

    @property
    def is_on_own_network(self) -> bool:
        """Whether its server is on this computer or in a private network: nobody sends a bill."""
        host = BY_PREFIX.get(self.provider)
        name = urlsplit(self.base_url or (host.url if host else "")).hostname or ""
        with suppress(ValueError):
            return ip_address(name).is_private
        return name == "localhost" or name.endswith((".localhost", ".local", ".internal"))


def is_language_model(address: str) -> bool:
    """Return whether a model's address, with or without parameters, is of a language model."""
    return not address.startswith(f"{_OFFLINE}:")


def varies(address: str) -> bool:
    """Return whether runs of a model can differ, by its address with parameters."""
    return is_language_model(address) and "temperature=0" not in address.split()


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
    if request_path := _REQUEST_PATH.search(parts.path):
        raise ValueError(f"ends with {request_path[1]}, which is added to it: remove that")
    return url.rstrip("/")
