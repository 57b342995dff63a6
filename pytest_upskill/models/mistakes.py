"""Mistakes in model names: how to recognize them, and messages with the correct spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_upskill.models.hosts import BY_PREFIX
from pytest_upskill.models.model import ModelError
from pytest_upskill.models.parameters import NAMES, OTHER_NAMES
from pytest_upskill.project.messages import did_you_mean
from pytest_upskill.project.redaction import HIDDEN, without_credentials

BEDROCK_NAME = re.compile(r"([a-z]+\.)?[a-z0-9]+\..+-v\d+(:\d+)?")
"""Amazon Bedrock's names of models, which begin with a vendor's name and a dot."""

_BAD_BASE_URL = re.compile(r"@.*(//|@)|://[^@]*@")
"""A model with what looks like a base URL of another scheme; there may be a password in it."""
_QUERY = re.compile(r"\?(?=\w+=)")
_EFFORT = re.compile(r"(?P<model>.+)[.:](?P<effort>minimal|low|medium|high|xhigh)")
_LOGIN = re.compile(
    r"(?P<user>[^:/@]*):[^/@]+@(?P<host>([\w-]+\.)+[a-z][\w-]*|[\d.]+:\d+|localhost)(?=[:/]|$)"
)
"""Credentials in front of a host that lacks its scheme; not a model's version such as @20250514."""


def refuse_bad_url(spec: str) -> None:
    """Raise ModelError for what seems to be a base URL without its scheme, and hide passwords."""
    if _BAD_BASE_URL.search(spec):
        shown = re.sub("(@|://).*@", rf"\1{HIDDEN}@", without_credentials(spec))
    elif _LOGIN.match(spec):
        shown = _LOGIN.sub(rf"\g<user>:{HIDDEN}@\g<host>", spec)
    else:
        return
    raise ModelError(
        f"bad model {shown!r}: write model@base_url; a base URL begins with http:// or https://"
    )


def split_query(name: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a model's name without parameters like ``?temperature=0``, and their pairs."""
    model, *query = _QUERY.split(name, maxsplit=1)
    pairs = (part.partition("=") for part in "".join(query).split("&") if part)
    return model, [(key, value) for key, _, value in pairs]


def split_effort(name: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a model's name without an effort such as ``:high`` at its end, and its pair."""
    match = _EFFORT.fullmatch(name)
    if match is None:
        return name, []
    return match["model"], [("effort", match["effort"])]


def parameters_in_name(model: str, label: str, parameters: Sequence[tuple[str, str]]) -> ModelError:
    """Make the error for parameters in a model's name, as other programs write them.

    Args:
        model: The name without them.
        label: The label of the model.
        parameters: Keys and values; the values of unknown keys are hidden.
    """
    options = []
    for key, value in parameters:
        own_name = "effort" if key == "reasoning" else OTHER_NAMES.get(key, key)
        shown = f"{own_name}={value}" if own_name in NAMES else "KEY=VALUE"
        options.append(f"--upskill-param {label}:{shown}")
    return ModelError(
        f"bad model {model!r} with {' and '.join(key for key, _ in parameters)}: parameters are "
        f"options: write {model} and {' '.join(dict.fromkeys(options))}"
    )


def hint(name: str, short_names: Sequence[str], *, bedrock: bool) -> str:
    """Return the end of a message about a model name without a known host: how to write it.

    Args:
        name: The model's name.
        short_names: Names that may have been mistyped, such as aliases.
        bedrock: Whether the name is one of Amazon Bedrock's.
    """
    head, slash, tail = name.partition("/")
    if bedrock:
        return f"; the name is Amazon Bedrock's, so write the URL of your gateway to it: {name}@URL"
    if name.startswith("gpt-oss"):
        return f", such as ollama:{name}"
    if slash and head in BY_PREFIX:
        return f"; write {head}:{tail}, or {name}@http://127.0.0.1:8080/v1 for a local server"
    if "@" in name:
        return "; a base URL begins with http:// or https://"
    return did_you_mean(name.lower(), short_names)
