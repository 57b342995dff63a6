"""The endpoint of each model, with the key that is meant for it and for no other host."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pytest_upskill.models.hosts import BY_PREFIX, HOSTS, PLATFORMS
from pytest_upskill.models.model import Model, server
from pytest_upskill.project.redaction import Redactor, basic, secrets_of_userinfo, split_userinfo

NO_KEY = "none"
"""The key for a server that needs none, because the SDKs require one."""

PROTOCOL_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-version",
        "connection",
        "content-length",
        "content-type",
        "host",
    }
)
"""Headers that belong to a request itself."""

_ANY_HOST = "UPSKILL_API_KEY"
"""The variable with the key for hosts that the user names by URL; its suffix may be a label."""
_AWS = ("AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_KEY_VARIABLES = frozenset((*_AWS, *chain.from_iterable(host.keys for host in HOSTS)))


class KeyProblem(ValueError):  # noqa: N818  a mistake in the environment, not a failure of this program
    """A key that is ambiguous or invalid; the message says which variable to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A host with its credential."""

    wire: str
    """Wire format, ``anthropic`` or ``openai``; for a model of no known host, its provider."""
    url: str
    """Base URL without credentials; "" if the provider has no host."""
    client: str = ""
    """Class of the client in the SDK, whose environment variables and files apply; "" for none."""
    url_is_set: bool = False
    """Whether the user chose the URL of a cloud, instead of its region."""
    key_variable: str = ""
    """The variable that contains the key, for the message if the host refuses the key."""
    scheme: Literal["Bearer", "Basic"] = "Bearer"
    key: str | None = field(default=None, repr=False)
    """The credential after the scheme; None if the SDK finds one itself."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Further headers, which the user has set."""
    redactor: Redactor = field(default_factory=Redactor, repr=False, compare=False)
    """The redactor of all keys, including those that the SDK finds."""

    @property
    def host(self) -> str:
        """``host:port``, for messages."""
        return urlsplit(self.url).netloc


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
    models = tuple(models)
    hosts_of: dict[str, set[str]] = defaultdict(set)
    for model in models:
        if variable := _upskill_variable(model, environ):
            hosts_of[variable].add(urlsplit(_url_of(model, environ)).netloc)
    for variable, hosts in hosts_of.items():
        if len(hosts) > 1:
            raise KeyProblem(
                f"{variable} is ambiguous, {' and '.join(sorted(hosts))} would all get it: set "
                f"{_ANY_HOST}_LABEL, one for each label, instead"
            )
    redactor = redactor or Redactor(secrets(models, environ))
    return {model: _endpoint(model, environ, redactor) for model in models}


def secrets(models: Iterable[Model], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield all keys in the environment, and the credentials in URLs of models and proxies."""
    for model in models:
        yield from secrets_of_userinfo(model.userinfo)
        yield from (environ.get(variable, "").strip() for _, variable in model.headers)
    for name, value in environ.items():
        if name.upper().endswith(("_PROXY", "_BASE_URL", "_ENDPOINT")):
            yield from secrets_of_userinfo(value.partition("://")[2].rpartition("@")[0])
        elif name in _KEY_VARIABLES or name.startswith(_ANY_HOST):
            yield value.strip()


def is_custom(model: Model) -> bool:
    """Return whether a model is served by a host that is not a known vendor's."""
    return model.provider in BY_PREFIX and model.vendor is None


def missing_key(model: Model, environ: Mapping[str, str]) -> str:
    """Return a message that names the key variable of a model without a key, "" if it has one."""
    vendor = model.vendor
    for name, variable in model.headers:
        if not _is_set(environ, variable):
            return f"{model.label}: upskill_headers: no value for {name}: set {variable}"
    if vendor is None:
        return ""
    if lacking := [name for name in vendor.needs if not (model.base_url or _is_set(environ, name))]:
        return f"{model.label}: {vendor.title} needs its address: set {' and '.join(lacking)}"
    if _is_set(environ, *vendor.keys) or _upskill_variable(model, environ):
        return ""
    if not vendor.keys or (model.base_url is None and _finds_credentials(vendor.prefix, environ)):
        return ""
    return f"{model.label}: no key for {model.address}: set {vendor.keys[0]}"


def _endpoint(model: Model, environ: Mapping[str, str], redactor: Redactor) -> Endpoint:
    if model.provider not in BY_PREFIX:
        return Endpoint(wire=model.provider, url=model.base_url or "", redactor=redactor)
    vendor, url = model.vendor, _url_of(model, environ)
    headers = tuple(
        (name, _read(variable, environ, may_have_spaces=True))
        for name, variable in model.headers
        if _is_set(environ, variable)
    )
    wire = BY_PREFIX[model.provider].wire
    endpoint = Endpoint(wire=wire, url=url, headers=headers, redactor=redactor)
    if model.userinfo.strip(":"):
        where, key = "the user and password in its URL", basic(model.userinfo)
        return replace(endpoint, key_variable=where, scheme="Basic", key=key)
    variable = _upskill_variable(model, environ)
    if vendor is None or variable:
        key = _read(variable, environ) if variable else NO_KEY
        return replace(endpoint, key_variable=variable or _ANY_HOST, key=key)
    if vendor.prefix in PLATFORMS:
        return replace(
            endpoint,
            client=vendor.client,
            url_is_set=url != vendor.url,
            key_variable=vendor.sign_in,
        )
    variable = next((name for name in vendor.keys if _is_set(environ, name)), vendor.keys[0])
    client = vendor.client if model.base_url is None else ""
    own_key = _read(variable, environ) or (None if client else NO_KEY)
    return replace(endpoint, client=client, key_variable=variable, key=own_key)


def _url_of(model: Model, environ: Mapping[str, str]) -> str:
    """Return a model's base URL, or its host's, which a variable of the SDK may change."""
    if model.base_url:
        return model.base_url
    host = BY_PREFIX[model.provider]
    variable = host.url_variable
    url = environ.get(variable, "").strip() if variable else ""
    try:
        return split_userinfo(server(url) if url else host.url)[0]
    except ValueError as error:
        raise KeyProblem(f"{variable} {error}: write it as https://host/path") from None


def _upskill_variable(model: Model, environ: Mapping[str, str]) -> str:
    """Return the UPSKILL variable that contains a model's key, "" for none.

    The variable with the model's label applies to any host. The one without a label applies to
    hosts that the user names by URL: not to a local server under its usual URL, which needs no key;
    not to a vendor with an SDK, nor to one whose own variable is set.
    """
    host, vendor = BY_PREFIX.get(model.provider), model.vendor
    if host is None or host.prefix in PLATFORMS or model.userinfo.strip(":"):
        return ""
    of_label = f"{_ANY_HOST}_" + re.sub(r"\W", "_", model.label, flags=re.ASCII).upper()
    if _is_set(environ, of_label):
        return of_label
    is_named_by_url = model.base_url is not None and model.base_url != host.url
    is_vendors = vendor and (vendor.client or _is_set(environ, *vendor.keys))
    return _ANY_HOST if is_named_by_url and not is_vendors and _is_set(environ, _ANY_HOST) else ""


def has_module(name: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


def _is_set(environ: Mapping[str, str], *variables: str) -> bool:
    return any(environ.get(name, "").strip() for name in variables)


def _read(variable: str, environ: Mapping[str, str], *, may_have_spaces: bool = False) -> str:
    """Return a key or header without surrounding whitespace, "" if the variable is not set.

    Raises:
        KeyProblem: It cannot be sent.
    """
    value = environ.get(variable, "").strip()
    if not (value.isascii() and value.isprintable()) or (" " in value and not may_have_spaces):
        raise KeyProblem(
            f"{variable} is not a valid key: it contains a space, a line break or a non-ASCII "
            "character: paste it again"
        )
    return value


def _finds_credentials(prefix: str, environ: Mapping[str, str]) -> bool:
    """Return whether the SDK of a host would sign in without a key, as by a profile."""
    if prefix == "azure":
        return has_module("azure.identity")
    if prefix != "anthropic":
        return False
    home = os.path.expanduser("~/.config/anthropic")  # noqa: PTH111 - Path.home() may raise
    has_profile = Path(environ.get("ANTHROPIC_CONFIG_DIR") or home, "configs").is_dir()
    return has_profile or _is_set(environ, "ANTHROPIC_PROFILE", "ANTHROPIC_FEDERATION_RULE_ID")
