"""Selection of the key for each host, so that no key is sent to another host."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from pytest_upskill.model import Model, server
from pytest_upskill.sanitize.redaction import Redactor, basic, secrets_of_userinfo, split_userinfo

NO_KEY = "none"
"""The key for a server that needs none, because the SDKs require one."""

_ANY_HOST = "UPSKILL_API_KEY"
_OWN_URL: Mapping[str, str] = MappingProxyType(
    {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
)
_KEYS_OF_HOST: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "api.anthropic.com": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        "api.openai.com": ("OPENAI_API_KEY",),
    }
)
_KEY_VARIABLES = frozenset(chain.from_iterable(_KEYS_OF_HOST.values()))


class KeyProblem(ValueError):  # noqa: N818  a mistake in the environment, not a failure of this program
    """A key that is ambiguous or invalid; the message says which variable to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A host with its credential."""

    provider: str
    url: str
    """Base URL without credentials; "" if the provider has no host."""
    own: bool = False
    """Whether the SDK's environment variables (headers, organization, profiles) apply to it."""
    key_variable: str = ""
    """The source of the key, for messages if the host refuses it."""
    scheme: Literal["Bearer", "Basic"] = "Bearer"
    key: str | None = field(default=None, repr=False)
    """The credential after the scheme; None if the SDK finds it by itself."""
    redactor: Redactor = field(default_factory=Redactor, repr=False, compare=False)
    """The redactor of all keys, including those that the SDK finds."""

    @property
    def host(self) -> str:
        """``host:port``, for messages."""
        return urlsplit(self.url).netloc

    def redact(self, text: str) -> str:
        """Return a text without any known key."""
        return self.redactor.redact(text)


def endpoints(
    models: Iterable[Model], environ: Mapping[str, str], redactor: Redactor | None = None
) -> dict[Model, Endpoint]:
    """Return the host and the key of every model; equal endpoints can share a client.

    Args:
        models: All models of a run.
        environ: The environment variables.
        redactor: The redactor for replies; None for a new one with the keys of the models.

    Raises:
        KeyProblem: A key is ambiguous or invalid.
    """
    chosen = tuple(models)
    takers: dict[str, set[str]] = defaultdict(set)
    for model in chosen:
        if model.base_url and model.provider in _OWN_URL and not _vendor(model):
            for variable in (_ANY_HOST, _variable_of(model.label)):
                takers[variable].add(urlsplit(model.base_url).netloc)
    redactor = redactor or Redactor(secrets(chosen, environ))
    return {
        model: replace(_endpoint(model, environ, takers), redactor=redactor) for model in chosen
    }


def secrets(models: Iterable[Model], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield all keys in the environment, and the credentials in URLs of models and proxies."""
    for model in models:
        yield from secrets_of_userinfo(model.userinfo)
    for name, value in environ.items():
        if name.upper().endswith(("_PROXY", "_BASE_URL")):
            yield from secrets_of_userinfo(value.partition("://")[2].rpartition("@")[0])
        elif name in _KEY_VARIABLES or name.startswith(_ANY_HOST):
            yield value.strip()


def is_custom(model: Model) -> bool:
    """Return whether a model has a base URL that is not the host of a known vendor."""
    return model.base_url is not None and model.provider in _OWN_URL and _vendor(model) is None


def missing_key(model: Model, environ: Mapping[str, str]) -> str | None:
    """Return a message with the missing key variable of a model, None if nothing is missing."""
    names = _KEYS_OF_HOST.get(_vendor(model) or "")
    if names is None or any(environ.get(name, "").strip() for name in names):
        return None
    if model.base_url is None and model.provider == "anthropic" and _finds_credentials(environ):
        return None
    return f"{model.label}: no key for {model.resolved}: set {names[0]}"


def _endpoint(model: Model, environ: Mapping[str, str], takers: Mapping[str, set[str]]) -> Endpoint:
    if model.provider not in _OWN_URL:
        return Endpoint(provider=model.provider, url=model.base_url or "")
    names = _KEYS_OF_HOST.get(_vendor(model) or "")
    if names is None:
        return _custom_endpoint(model, environ, takers)
    url, _ = split_userinfo(model.base_url or _own_url(model.provider, environ))
    variable = next((name for name in names if environ.get(name, "").strip()), names[0])
    return Endpoint(
        provider=model.provider,
        url=url,
        own=model.base_url is None,
        key_variable=variable,
        key=_usable(variable, environ) or None,
    )


def _own_url(provider: str, environ: Mapping[str, str]) -> str:
    """Return the base URL of a provider, which an environment variable of its SDK may change."""
    variable = f"{provider.upper()}_BASE_URL"
    url = environ.get(variable, "").strip()
    try:
        return server(url) if url else _OWN_URL[provider]
    except ValueError as error:
        raise KeyProblem(f"{variable} {error}: write it as https://host/path") from None


def _custom_endpoint(
    model: Model, environ: Mapping[str, str], takers: Mapping[str, set[str]]
) -> Endpoint:
    """Return the endpoint of a custom host, with the credentials in its URL or a key for it."""
    assert model.base_url is not None
    if model.userinfo.strip(":"):
        return Endpoint(
            provider=model.provider,
            url=model.base_url,
            key_variable="the user and password in its URL",
            scheme="Basic",
            key=basic(model.userinfo),
        )
    variable = _variable_of(model.label)
    cure = "give one of them another label"
    if not environ.get(variable, "").strip():
        cure = f"unset it and set {variable} (one variable per label) instead"
        variable = _ANY_HOST
    if len(takers[variable]) > 1 and environ.get(variable, "").strip():
        hosts = " and ".join(sorted(takers[variable]))
        raise KeyProblem(f"{variable} is ambiguous, {hosts} would all get it: {cure}")
    return Endpoint(
        provider=model.provider,
        url=model.base_url,
        key_variable=variable,
        key=_usable(variable, environ) or NO_KEY,
    )


def _variable_of(label: str) -> str:
    return f"{_ANY_HOST}_" + re.sub(r"\W", "_", label, flags=re.ASCII).upper()


def _usable(variable: str, environ: Mapping[str, str]) -> str:
    """Return a key without surrounding whitespace, such as the line break at the end of a secret.

    Raises:
        KeyProblem: The key contains a space or an invalid character.
    """
    key = environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise KeyProblem(
            f"{variable} is not a valid key: it contains a space, a line break or a non-ASCII "
            f"character: paste it again"
        )
    return key


def _vendor(model: Model) -> str | None:
    """Return the host of a model if it is a known vendor's, None for any other host."""
    url = urlsplit(model.base_url or _OWN_URL.get(model.provider, ""))
    host = url.netloc.lower()
    # With plain HTTP, userinfo or another port, it may not be the vendor: do not send its key.
    plain = url.scheme == "https" and not model.userinfo
    return host if plain and host in _KEYS_OF_HOST else None


def _finds_credentials(environ: Mapping[str, str]) -> bool:
    """Return whether Anthropic's SDK would find a profile or a workload identity."""
    if environ.get("ANTHROPIC_PROFILE"):
        return True
    identity = "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE"
    federation = "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID"
    if all(environ.get(name) for name in federation) and any(map(environ.get, identity)):
        return True
    home = environ.get("ANTHROPIC_CONFIG_DIR") or Path.home() / ".config" / "anthropic"
    return Path(home, "configs").is_dir()
