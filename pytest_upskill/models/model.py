"""A model, and the grammar of its name: ``[label=][agent:][host:]model[@base_url]``.

`Names.model` takes off the label, the agent and the base URL, in this order. What is left is an
alias, a name after a host's prefix, or a bare name, whose vendor is told by its naming scheme.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from pytest_upskill.models.hosts import BY_NETLOC, BY_PREFIX, PLATFORMS, KnownHost
from pytest_upskill.models.parameters import Parameters
from pytest_upskill.models.streams import AgentFormat
from pytest_upskill.project.messages import did_you_mean
from pytest_upskill.project.redaction import HIDDEN, split_userinfo, without_credentials

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
    def varies(self) -> bool:
        """Whether its runs can differ."""
        return self.is_language_model and self.parameters.temperature != 0

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
    # The temperature is written first. Other parameters may have blanks in their values.
    return is_language_model(address) and address.split(" ")[1:2] != ["temperature=0"]


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


ALIASES: Mapping[str, str] = {
    "haiku": "anthropic:claude-haiku-5-5",
    "sonnet": "anthropic:claude-sonnet-5-5",
    "opus": "anthropic:claude-opus-5-5",
    "kimi": "hf:moonshotai/Kimi-K2-Instruct-0905:groq",
}
"""Short names for Anthropic's current models, and the model that upskill calls kimi.

The ini key ``upskill_aliases`` adds and overrides.
"""

_WIRE_FORMATS = frozenset({"anthropic", "openai", "generic"})
"""Prefixes that name the wire format of a base URL."""
_OLLAMA = BY_PREFIX["ollama"]
_BASE_URL = re.compile(r"@(?=https?://)", re.IGNORECASE)
_COMMA_IN_PASSWORD = re.compile(r"://[^/@,]*,[^,]*@(?!https?://)", re.IGNORECASE)
"""A comma that does not end a model: what follows would be the rest of a URL with a password."""
_LABEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(?=.)")
_PLUGIN_PROVIDER = re.compile(r"[a-z][a-z0-9_-]*")
_OPENAI_NAME = re.compile(r"gpt-(?!oss)|chatgpt-|o\d")
"""Names of OpenAI's models; gpt-oss is served by others."""
_BAD_NAME = re.compile(r"@.*(//|@)|://|[?\s]|\A\Z|:[^/@]+@([\w-]+\.|localhost)")
"""No name, or one with what looks like a server without http://, or like parameters."""


def parse_model(text: str) -> Model:
    """Read one model, ``[label=][agent:][host:]model[@base_url]``, with the built-in aliases.

    Raises:
        ModelError: The specification is invalid; the message says how to write it.
    """
    return Names().model(text)


@dataclass(frozen=True, slots=True)
class Names:
    """How the names of models are read."""

    aliases: Mapping[str, str] = field(default_factory=lambda: ALIASES)
    """Maps short names to model specifications."""
    default_base_url: str | None = None
    """Base URL of an OpenAI-compatible server for names of unknown providers."""

    def models(self, specs: Sequence[str]) -> tuple[Model, ...]:
        """Read a list of models, each entry a comma-separated list such as ``"haiku,sonnet"``.

        Raises:
            ModelError: An entry is invalid, or different models have the same label.
        """
        for spec in filter(_COMMA_IN_PASSWORD.search, specs):
            raise _bad_model(spec, "write %2C for a comma in a password; ")
        models: dict[str, Model] = {}
        for part in filter(None, (part.strip() for spec in specs for part in spec.split(","))):
            model = self.model(part)
            earlier = models.setdefault(model.label, model)
            if earlier != model:
                raise ModelError(
                    f"models {earlier.resolved!r} and {model.resolved!r} would both have the label "
                    f"{model.label!r}: rename one of them, as in "
                    f"'other={without_credentials(_split_label(part)[1])}'"
                )
        return tuple(models.values())

    def model(self, text: str) -> Model:
        """Read one model, ``[label=][agent:][host:]model[@base_url]``.

        Raises:
            ModelError: The specification is invalid; the message says how to write it.
        """
        label, spec = _split_label(text.strip())
        agent, colon, model_spec = spec.partition(":")
        if colon and agent in AGENTS:
            model = self._of_agent(agent, model_spec)
        else:
            name, base_url = _split_base_url(spec)
            if _BAD_NAME.search(name):
                raise _bad_model(spec, "")
            if base_url is None and name.lower() in self.aliases:
                target = replace(self, aliases={}).model(self.aliases[name.lower()])
                model = replace(target, label=name.lower())
            else:
                model = self._served_model(name, base_url)
        return replace(model, label=label) if label else model

    def _of_agent(self, agent: str, spec: str) -> Model:
        """Read the model of an agent, ``[host:]model[@base_url]``."""
        vendors = [FORMATS[each] for each in AGENTS[agent]]
        if not spec:
            name = "gemini-3.5-flash" if vendors == ["gemini"] else "haiku"
            raise ModelError(f"bad model '{agent}:': write {agent}:MODEL, such as {agent}:{name}")
        head = spec.partition(":")[0]
        if vendors and _BASE_URL.search(spec) and _known_prefix(head, with_url=True) is None:
            # Its server must speak a format of the agent.
            name, base_url = _split_base_url(spec)
            first = f"{vendors[0]}:"
            model = self.model(f"{first}{name.removeprefix(first)}")
            bare_url, userinfo = split_userinfo(base_url or "")
            model = replace(model, base_url=bare_url, userinfo=userinfo)
        else:
            model = self.model(spec)
        if model.agent:
            raise ModelError(f"{agent}:{model.agent}: an agent uses a model, not another agent")
        of_agent = replace(model, agent=agent, label=f"{agent}-{model.label}")
        if vendors and of_agent.agent_format is None:
            raise ModelError(
                f"{agent} speaks the wire format of {' and '.join(vendors)} only, and "
                f"{model.resolved!r} does not: "
                f"write loop:{without_credentials(spec)} for an agent on this model"
            )
        return of_agent

    def _served_model(self, name: str, base_url: str | None) -> Model:
        """Find where a model is served; with a base URL only a known prefix is a host's."""
        head, colon, tail = name.partition(":")
        if colon and (prefix := _known_prefix(head, with_url=base_url is not None)):
            if not tail:
                raise _bad_model(name, "")
            if prefix == "generic":
                # As in upskill, whose README calls Ollama's models so.
                return _served("openai", tail, base_url or self.default_base_url or _OLLAMA.url)
            host, alias = BY_PREFIX[prefix], self.aliases.get(tail.lower(), "")
            if prefix == "anthropic" and alias.startswith("anthropic:"):
                tail = alias.removeprefix("anthropic:")
            model = _served(prefix, tail, base_url or (host.url if host.local else None))
            if prefix in PLATFORMS and model.vendor is None:
                raise ModelError(
                    f"{prefix}:{tail} is served by {host.title}: set {host.url_variable} for a "
                    "gateway to it, or write openai: or anthropic: for another server"
                )
            return model
        if base_url is not None:
            return _served("openai", name, base_url)
        head, dot, tail = name.partition(".")
        # The spelling of huggingface/upskill and fast-agent: provider.model
        if dot and tail and _known_prefix(head):
            return self._served_model(f"{head}:{tail}", None)
        return self._by_naming_scheme(name)

    def _by_naming_scheme(self, name: str) -> Model:
        """Find where a bare name is served, by the vendors' naming schemes.

        Raises:
            ModelError: No scheme fits.
        """
        if name == "offline":
            return _served("offline", name)
        if name.startswith("claude-"):
            return _served("anthropic", name)
        if name.startswith("gemini-"):
            return _served("gemini", name)
        if self.default_base_url is not None:
            return _served("openai", name, self.default_base_url)
        if _OPENAI_NAME.match(name) and "/" not in name:
            return _served("openai", name)
        head, colon, tail = name.partition(":")
        if colon and tail and head not in {"ft", "gpt-oss"} and _PLUGIN_PROVIDER.fullmatch(head):
            return _served(head, tail)
        suggestion = did_you_mean(name.lower(), ["offline", *self.aliases])
        if "@" in name and "://" not in name:
            suggestion = " (http:// or https:// is missing after the @)"
        raise ModelError(
            f"cannot tell the host of model {name!r}{suggestion}: write host:model or "
            "model@base_url, such as ollama:gpt-oss:20b or glm-4.7@http://127.0.0.1:8080/v1"
        )


def _split_label(spec: str) -> tuple[str | None, str]:
    """Return the label, None if there is none, and the rest of a specification."""
    match = _LABEL.match(spec)
    return (match[1], spec[match.end() :]) if match else (None, spec)


def _split_base_url(spec: str) -> tuple[str, str | None]:
    """Return a specification without its base URL, and the URL; None if there is none.

    Raises:
        ModelError: The URL is invalid.
    """
    name, *urls = _BASE_URL.split(spec, maxsplit=1)
    if not urls:
        return name, None
    try:
        return name, server(urls[0])
    except ValueError as error:
        azure = ".azure.com" in urls[0]
        cure = ": write azure:DEPLOYMENT@https://RESOURCE.openai.azure.com" if azure else ""
        raise _bad_model(spec, f"the base URL {error}{cure}; ") from None


def _bad_model(spec: str, problem: str) -> ModelError:
    """Return the error of a specification, without passwords, and how to write one."""
    shown = re.sub("([?@:]|://).*@", rf"\1{HIDDEN}@", without_credentials(spec))
    return ModelError(
        f"bad model {shown!r}: {problem}write [label=][agent:][host:]model[@base_url], such as "
        "haiku, ollama:gpt-oss:20b or glm=zai/glm-4.7@http://127.0.0.1:8080/v1"
    )


def _served(provider: str, name: str, base_url: str | None = None) -> Model:
    """Return a model as it is sent, and where, with a label from its name."""
    bare_url, userinfo = (None, "") if base_url is None else split_userinfo(base_url)
    last_part = name.rstrip("/").rpartition("/")[2]
    # With the characters that node ids allow.
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", last_part).strip("-") or "model"
    return Model(label=label, provider=provider, name=name, base_url=bare_url, userinfo=userinfo)


def _known_prefix(head: str, *, with_url: bool = False) -> str | None:
    """Return ``head`` in lower case if it is a known prefix of a model's name, else None.

    With a base URL, a vendor's prefix is part of the name: Ollama's ``mistral:7b``.
    """
    head = head.lower()
    host = BY_PREFIX.get(head)
    if head in _WIRE_FORMATS | PLATFORMS or (host is not None and (host.local or not with_url)):
        return head
    return None
