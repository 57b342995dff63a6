"""Hints how to fix a request that fails, by the error message of the host."""

from __future__ import annotations

import re
from http import HTTPStatus
from types import MappingProxyType
from urllib.parse import urlsplit

from pytest_upskill.models.hosts import BY_PREFIX, HOSTS
from pytest_upskill.models.keys import Endpoint
from pytest_upskill.models.model import Model
from pytest_upskill.models.parameters import Parameters

SHORTEN = (
    "lower --upskill-max-tokens, shorten the skill or the case, or serve the model with a larger "
    "context"
)
"""How to fix a request that is too long."""

_CURES = (
    (
        re.compile(
            r"context.?(length|size|window)|prompt is too long|too many (input )?tokens"
            r"|input (is )?too long|maximum context",
            re.IGNORECASE,
        ),
        SHORTEN,
    ),
    (
        re.compile(
            r"(?<!unsupported parameter: ')max_(completion_|output_|new_)?tokens(?!' is not supp)"
            r"|maximum output|output limit",
            re.IGNORECASE,
        ),
        "set --upskill-max-tokens to what the model allows",
    ),
)
"""Patterns of error messages, each with how to fix the request."""

NO_TOOLS = re.compile(
    r"not support (tool|function)|support tool use"
    r"|(tool|function).{0,9}calling.{0,3} is not supported"
    r"|tools param requires|auto.? tool choice requires",
    re.IGNORECASE,
)
"""Messages of Ollama, OpenRouter, Groq, llama.cpp and vLLM for models that accept no tools."""

CALL_TOOLS = (
    "choose a model that calls tools, or serve this one so that it does (llama-server: --jinja; "
    "vLLM: --enable-auto-tool-choice with --tool-call-parser)"
)
"""How to fix a request with tools to a model that accepts none."""

FILTERED = re.compile(
    r"content[_ ](filter|management policy|policy[_ ]violation)|responsible ?ai", re.IGNORECASE
)
"""Messages of a content filter that refused the question or the answer."""

LOADING = re.compile(r"loading|starting up|warming up", re.IGNORECASE)
"""Messages of a host that is still loading the model."""


_NO_NAME = re.compile(r"name or service|nodename nor|name resolution|getaddrinfo", re.IGNORECASE)
"""Messages of resolvers that do not know a host."""

_FIELDS_OF = MappingProxyType(
    {
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "seed": ("seed",),
        "stop": ("stop", "stop_sequences"),
        "effort": ("effort", "reasoning", "reasoning_effort", "output_config"),
    }
)
"""The names of each parameter in error messages."""


def cure_of(message: str, parameters: Parameters) -> str:
    """Return how to fix a request that a host refuses, "" if unknown.

    Args:
        message: The error message of the host.
        parameters: The model parameters in the request.
    """
    for entry in parameters.entries:
        key = entry.partition("=")[0]
        names = _FIELDS_OF.get(key, (key.removeprefix("body."),))
        if any(re.search(rf"(?<![a-z_]){re.escape(name)}(?![a-z_])", message) for name in names):
            return f"leave out --upskill-param {entry} for this model, or change it"
    return next((cure for pattern, cure in _CURES if pattern.search(message)), "")


def not_served(status: int, model: Model, endpoint: Endpoint) -> str:
    """Return what a reply with status 404, 405, 410 or 501 means, and what may be wrong."""
    problem = f"{endpoint.host} serves no models at this URL"
    if status == HTTPStatus.NOT_FOUND:
        problem = f"no model {model.name!r} at {endpoint.host}"
    return problem + url_hint(endpoint)


def url_hint(endpoint: Endpoint) -> str:
    """Return what may be wrong with the base URL of an endpoint, "" if it looks right."""
    is_known = any(endpoint.url == host.url for host in HOSTS)
    if endpoint.wire != "openai" or is_known or endpoint.url.endswith("/v1"):
        return ""
    return ", or the base URL lacks /v1"


def connection_hint(cause: BaseException, endpoint: Endpoint, model: Model) -> str:
    """Return what to check after a failed connection to a host.

    Args:
        cause: The error of the HTTP client, or of the socket.
        endpoint: The host.
        model: The model of the request.
    """
    message = str(cause)
    if endpoint.url.startswith("https:") and "SSL" in message:
        return "check its certificate, or write http:// if it has no TLS"
    if _NO_NAME.search(message):
        return "check the name of the host"
    if type(cause).__name__ == "RemoteProtocolError" and "disconnected" not in message:
        return "it does not speak HTTP; write https:// if it has TLS"
    if type(cause).__name__ in {"RemoteProtocolError", "ReadError"}:
        return "it hung up: check that it serves models, and write https:// if it has TLS"
    host = BY_PREFIX.get(model.provider)
    command = f" ({host.command})" if host is not None and host.command else ""
    scheme = _proxy_scheme(endpoint)
    proxy = f" through the proxy in {scheme}_proxy (or set NO_PROXY)" if scheme else ""
    return f"is it running{command} and reachable{proxy}?"


def _proxy_scheme(endpoint: Endpoint) -> str:
    """Return the scheme of the proxy that the environment sets for a host, "" for none."""
    # Imported here: it takes 10 ms, and most runs have no such error.
    from urllib.request import getproxies, proxy_bypass

    url = urlsplit(endpoint.url)
    if proxy_bypass(url.hostname or ""):
        return ""
    return next((scheme for scheme in (url.scheme, "all") if scheme in getproxies()), "")


def refused_parameter(model: Model) -> str:
    """Return which parameters a model is known to refuse, and the cure; "" if there are none."""
    host, parameters = model.vendor, model.parameters
    if host is None:
        custom_host = BY_PREFIX.get(model.provider)
        if custom_host and custom_host.wire == "anthropic" and parameters.seed is not None:
            return (
                f"--upskill-param: Anthropic's format, in which {model.name} is asked, has no "
                "seed: set it for other models only, as in LABEL:seed=..."
            )
        return ""
    refused = set(host.refuses)
    if parameters.effort != "none" and model.always_reasons and host.prefix in {"openai", "github"}:
        refused |= {"temperature", "top_p"}
    keys = [entry.partition("=")[0] for entry in parameters.entries]
    wrong_keys = [key for key in keys if key in refused]
    if not wrong_keys:
        return ""
    them = "it" if len(wrong_keys) == 1 else "them"
    return (
        f"--upskill-param: {host.title} refuses {' and '.join(wrong_keys)} for {model.name}: set "
        f"{them} for other models only, as in LABEL:{wrong_keys[0]}=..."
    )
