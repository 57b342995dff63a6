"""The model grammar: ``[label=][agent:][host:]model[@base_url]``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from pytest_upskill.model.hosts import BY_PREFIX
from pytest_upskill.model.mistakes import (
    BEDROCK_NAME,
    hint,
    parameters_in_name,
    refuse_bad_url,
    split_effort,
    split_query,
)
from pytest_upskill.model.model import AGENTS, Model, ModelError, server
from pytest_upskill.sanitize.redaction import split_userinfo, without_credentials

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "haiku": "anthropic:claude-haiku-5-5",
        "sonnet": "anthropic:claude-sonnet-5-5",
        "opus": "anthropic:claude-opus-5-5",
        "kimi": "hf:moonshotai/Kimi-K2-Instruct-0905:groq",
    }
)
"""Short names for Anthropic's current models, and the model that upskill calls kimi.

The ini key ``upskill_aliases`` adds and overrides.
"""

_ANY_URL = frozenset({"anthropic", "openai", "generic"})
"""Prefixes that name the wire format of a base URL."""
_BASE_URL = re.compile(r"@(?=https?://)", re.IGNORECASE)
_OPEN_USERINFO = re.compile(r"://[^/@]*$")
"""The end of a URL without a path, or of one that was split at a comma in its credentials."""
_LABEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(?=.)")
_PLUGIN_PROVIDER = re.compile(r"[a-z][a-z0-9_-]*")
_OPENAI_NAME = re.compile(r"gpt-(?!oss)|chatgpt-|o\d")
"""Names of OpenAI's models; gpt-oss is served by others."""


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
    """Read one model, ``[label=][host:]model[@base_url]``.

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
            f"bad model {without_credentials(text)!r}: write [label=][host:]model[@base_url]"
        )
    label, spec = _split_label(spec)
    agent, colon, inner = spec.partition(":")
    if colon and agent in AGENTS:
        return _parse_agent(agent, inner, label, aliases, default_base_url)
    name, *urls = _BASE_URL.split(spec, maxsplit=1)
    if not urls:
        refuse_bad_url(spec)
    try:
        base_url = server(urls[0]) if urls else None
    except ValueError as error:
        shown = without_credentials(spec)
        raise ModelError(f"bad model {shown!r}: the base URL {error}") from None
    _refuse_parameters(name, label, aliases, base_url)
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


def _parse_agent(
    agent: str,
    inner: str,
    label: str | None,
    aliases: Mapping[str, str],
    default_base_url: str | None,
) -> Model:
    """Read the model of an agent, ``AGENT:[host:]model[@base_url]``."""
    if not inner:
        raise ModelError(f"bad model '{agent}:': write {agent}:MODEL, such as {agent}:haiku")
    spoken = AGENTS[agent]
    head = inner.partition(":")[0].lower()
    if spoken and _BASE_URL.search(inner) and _prefix(head, with_url=True) is None:
        inner = f"{spoken}:{inner}"
    model = parse_model(inner, aliases=aliases, default_base_url=default_base_url)
    if model.agent:
        raise ModelError(f"{agent}:{model.agent}: an agent uses a model, not another agent")
    host = BY_PREFIX.get(model.provider)
    if spoken and (host is None or host.wire != spoken):
        raise ModelError(
            f"{agent} speaks the wire format of {spoken} only, and {model.resolved!r} does not: "
            f"write loop:{without_credentials(inner)} for an agent on this model"
        )
    return replace(model, agent=agent, label=label or f"{agent}-{model.label}")


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


def _refuse_parameters(
    name: str, label: str | None, aliases: Mapping[str, str], base_url: str | None
) -> None:
    """Raise ModelError for parameters in a model's name.

    With a base URL, ``:high`` may be a part of the name; so it may be after a plugin's prefix.
    """
    model, given = split_query(name)
    if not given and base_url is None:
        bare, effort = split_effort(name)
        with suppress(ModelError):
            if effort and parse_model(bare, aliases=aliases).provider in BY_PREFIX:
                model, given = bare, effort
    if given:
        head, _, tail = model.partition(":")
        bare = tail if _prefix(head) else model
        raise parameters_in_name(model, label or _label_of(bare), given)


def _resolve(
    name: str, base_url: str | None, aliases: Mapping[str, str], default_base_url: str | None
) -> tuple[str, str, str | None]:
    """Return provider, model name and base URL; with a base URL the name is used unchanged."""
    head, colon, tail = name.partition(":")
    if colon and (known := _prefix(head, with_url=base_url is not None)):
        if not tail:
            raise ModelError(f"bad model {name!r}: no model name after '{head}:'")
        if known == "anthropic":
            tail = _anthropic_name(name, tail, aliases)
        if known == "generic":
            return "openai", tail, base_url or _generic_url(name, default_base_url)
        local = BY_PREFIX[known].url if BY_PREFIX[known].local else None
        return known, tail, base_url or local
    if base_url is not None:
        return "openai", name, base_url
    if name == "offline":
        return "offline", name, None
    head, dot, tail = name.partition(".")
    # The spelling of huggingface/upskill and fast-agent: provider.model
    if dot and tail and _prefix(head) and not BEDROCK_NAME.fullmatch(name):
        return _resolve(f"{head}:{tail}", None, aliases, default_base_url)
    return _guess(name, default_base_url, ["offline", *aliases])


def _prefix(head: str, *, with_url: bool = False) -> str | None:
    """Return a prefix of a model's name that is known, None for another one.

    With a base URL, a vendor's prefix is part of the name: Ollama's ``mistral:7b``.
    """
    head = head.lower()
    host = BY_PREFIX.get(head)
    if head in _ANY_URL or (host is not None and (host.local or not with_url)):
        return head
    return None


def _anthropic_name(name: str, tail: str, aliases: Mapping[str, str]) -> str:
    """Return the name of a model of Anthropic's, which may be an alias.

    Raises:
        ModelError: The user's aliases make it stand for another model.
    """
    if tail.lower() not in aliases:
        return tail
    target = parse_model(aliases[tail.lower()], aliases={})
    if (target.provider, target.base_url) != ("anthropic", None):
        raise ModelError(
            f"{name!r}: {tail} is an alias of {target.resolved} here: write {tail!r} to mean that, "
            "or Anthropic's full model name"
        )
    return target.name


def _generic_url(name: str, default_base_url: str | None) -> str:
    if default_base_url is None:
        raise ModelError(
            f"{name!r} needs a server: write {name}@http://127.0.0.1:8080/v1 "
            "or set --upskill-base-url"
        )
    return default_base_url


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
    bedrock = BEDROCK_NAME.fullmatch(name)
    if (
        (colon and tail and not bedrock)
        and head not in {"ft", "gpt-oss"}
        and _PLUGIN_PROVIDER.fullmatch(head)
    ):
        return head, tail, None
    raise ModelError(
        f"cannot tell the host of model {name!r}: write host:model or model@base_url"
        + hint(name, known, bedrock=bedrock is not None)
    )


def _label_of(name: str) -> str:
    """Return a label for a model name: its last part, with characters that node ids allow."""
    return (
        re.sub(r"[^A-Za-z0-9._-]+", "-", name.rstrip("/").rpartition("/")[2]).strip("-") or "model"
    )
