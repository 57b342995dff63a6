"""The model grammar: ``[label=][provider:]model[@base_url]``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import pairwise
from types import MappingProxyType
from urllib.parse import urlsplit

from pytest_upskill.sanitize.redaction import HIDDEN, split_userinfo, without_credentials

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "haiku": "anthropic:claude-haiku-5-5",
        "sonnet": "anthropic:claude-sonnet-5-5",
        "opus": "anthropic:claude-opus-5-5",
    }
)
"""Short names for Anthropic's current models; ini ``upskill_aliases`` adds and overrides."""

_PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "generic": "openai"}
_BASE_URL = re.compile(r"@(?=https?://)", re.IGNORECASE)
_OPEN_USERINFO = re.compile(r"://[^/@]*$")
"""The end of a URL without a path, or of one that was split at a comma in its credentials."""
_BAD_BASE_URL = re.compile(r"@.*(//|@)|://[^@]*@")
"""A model with what looks like a base URL of another scheme; there may be a password in it."""
_LABEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(?=.)")
_PLUGIN_PROVIDER = re.compile(r"[a-z][a-z0-9_-]*")
_OPENAI_NAME = re.compile(r"gpt-|chatgpt-|o\d")


class ModelError(ValueError):
    """An invalid model specification; the message says how to write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model to run the cases on."""

    label: str
    """Short name in node ids and reports, unique in a run."""
    provider: str
    """``anthropic``, ``openai``, ``offline``, or a provider that a plugin's hook serves."""
    name: str
    """The id that is sent to the API, unchanged."""
    base_url: str | None = None
    """Base URL without credentials; None for the provider's own host."""
    userinfo: str = field(default="", repr=False)
    """``user:password`` from the base URL; "" if there is none."""

    @property
    def resolved(self) -> str:
        """``provider:name@host``, without credentials, for reports."""
        if self.base_url is None:
            return f"{self.provider}:{self.name}"
        return f"{self.provider}:{self.name}@{urlsplit(self.base_url).netloc}"


def parse_models(
    specs: Iterable[str],
    *,
    aliases: Mapping[str, str] = ALIASES,
    default_base_url: str | None = None,
) -> tuple[Model, ...]:
    """Read a list of models, each entry a comma-separated list.

    Args:
        specs: Entries such as ``"haiku,sonnet"`` or ``"glm=zai/glm-4.7@http://127.0.0.1:8080/v1"``.
        aliases: Maps short names to model specifications.
        default_base_url: Base URL of an OpenAI-compatible server for names of unknown providers.

    Raises:
        ModelError: An entry is invalid, or different models have the same label.
    """
    parts = [part for spec in specs for part in _parts(spec)]
    models: dict[str, Model] = {}
    for part in parts:
        model = parse_model(part, aliases=aliases, default_base_url=default_base_url)
        other = models.setdefault(model.label, model)
        if other is not model and other != model:
            raise ModelError(
                f"models {other.resolved!r} and {model.resolved!r} would both have the label "
                f"{model.label!r}: rename one of them, as in "
                f"'other={without_credentials(_split_label(part)[1])}'"
            )
    return tuple(models.values())


def parse_model(
    text: str,
    *,
    aliases: Mapping[str, str] = ALIASES,
    default_base_url: str | None = None,
) -> Model:
    """Read one model, ``[label=][provider:]model[@base_url]``.

    Args:
        text: The model specification.
        aliases: Maps short names to model specifications.
        default_base_url: Base URL of an OpenAI-compatible server for names of unknown providers.

    Raises:
        ModelError: The specification is invalid; the message says how to write it.
    """
    spec = text.strip()
    if not spec or any(char.isspace() for char in spec):
        raise ModelError(
            f"bad model {without_credentials(text)!r}: write [label=][provider:]model[@base_url]"
        )
    label, spec = _split_label(spec)
    name, *urls = _BASE_URL.split(spec, maxsplit=1)
    if not urls and _BAD_BASE_URL.search(spec):
        shown = re.sub("(@|://).*@", rf"\1{HIDDEN}@", without_credentials(spec))
        raise ModelError(
            f"bad model {shown!r}: write model@base_url; a base URL begins with http:// or https://"
        )
    try:
        base_url = server(urls[0]) if urls else None
    except ValueError as error:
        shown = without_credentials(spec)
        raise ModelError(f"bad model {shown!r}: the base URL {error}") from None
    if not name:
        shown = without_credentials(spec)
        raise ModelError(f"bad model {shown!r}: no model name before the '@'")
    if base_url is None and name.lower() in aliases:
        target = parse_model(aliases[name.lower()], aliases={}, default_base_url=default_base_url)
        return replace(target, label=label or name.lower())
    provider, model_name, base_url = _resolve(name, base_url, aliases, default_base_url)
    bare_url, userinfo = (None, "") if base_url is None else split_userinfo(base_url)
    return Model(
        label=label or _label_of(model_name),
        provider=provider,
        name=model_name,
        base_url=bare_url,
        userinfo=userinfo,
    )


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


def _parts(spec: str) -> list[str]:
    """Split a comma-separated list; raise ModelError if a comma seems to be part of a password."""
    parts = [part.strip() for part in spec.split(",") if part.strip()]
    for part, following in pairwise(parts):
        if _OPEN_USERINFO.search(part) and "@" in following and "://" not in following:
            shown = without_credentials(f"{part}@")
            raise ModelError(
                f"bad model {shown!r}: write %2C for a comma in a password, "
                "and http:// or https:// before the host of a base URL"
            )
    return parts


def _split_label(spec: str) -> tuple[str | None, str]:
    match = _LABEL.match(spec)
    return (match[1], spec[match.end() :]) if match else (None, spec)


def _resolve(
    name: str, base_url: str | None, aliases: Mapping[str, str], default_base_url: str | None
) -> tuple[str, str, str | None]:
    """Return provider, model name and base URL; with a base URL the name is used unchanged."""
    head, colon, tail = name.partition(":")
    if colon and head.lower() in _PROVIDERS:
        if not tail:
            raise ModelError(f"bad model {name!r}: no model name after '{head}:'")
        provider = _PROVIDERS[head.lower()]
        if provider == "anthropic" and tail.lower() in aliases:
            target = parse_model(aliases[tail.lower()], aliases={})
            if (target.provider, target.base_url) != ("anthropic", None):
                raise ModelError(
                    f"{name!r}: {tail} is an alias of {target.resolved} here: write {tail!r} to "
                    f"mean that, "
                    "or Anthropic's full model name"
                )
            tail = target.name
        if head.lower() == "generic" and base_url is None:
            base_url = default_base_url
            if base_url is None:
                raise ModelError(
                    f"{name!r} needs a server: write {name}@http://127.0.0.1:8080/v1 "
                    "or set --upskill-base-url"
                )
        return provider, tail, base_url
    if base_url is not None:
        return "openai", name, base_url
    if name == "offline":
        return "offline", name, None
    head, dot, tail = name.partition(".")
    # The spelling of huggingface/upskill and fast-agent: provider.model
    if dot and tail and head.lower() in _PROVIDERS:
        return _resolve(f"{head}:{tail}", None, aliases, default_base_url)
    return _guess(name, default_base_url, ["offline", *aliases])


def _guess(
    name: str, default_base_url: str | None, known: Sequence[str]
) -> tuple[str, str, str | None]:
    """Return provider, model name and base URL of a bare name, by the vendors' naming schemes."""
    if name.startswith("claude-"):
        return "anthropic", name, None
    if default_base_url is not None:
        return "openai", name, default_base_url
    if _OPENAI_NAME.match(name) and "/" not in name:
        return "openai", name, None
    head, colon, tail = name.partition(":")
    if colon and tail and head != "ft" and _PLUGIN_PROVIDER.fullmatch(head) and "/" not in head:
        return head, tail, None
    head, slash, tail = name.partition("/")
    hint = ""
    if slash and head in _PROVIDERS:
        hint = f"; write {head}:{tail}, or {name}@http://127.0.0.1:8080/v1 for a local server"
    elif "@" in name:
        hint = "; a base URL begins with http:// or https://"
    elif close := get_close_matches(name.lower(), known, n=1):
        hint = f" (did you mean {close[0]!r}?)"
    raise ModelError(
        f"cannot tell the provider of model {name!r}: write provider:model or model@base_url{hint}"
    )


def _label_of(name: str) -> str:
    """Return a label for a model name: its last part, with characters that node ids allow."""
    return (
        re.sub(r"[^A-Za-z0-9._-]+", "-", name.rstrip("/").rpartition("/")[2]).strip("-") or "model"
    )
