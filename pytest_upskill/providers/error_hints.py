"""Classification of the error messages of hosts that refuse a request."""

from __future__ import annotations

import re
from types import MappingProxyType

from pytest_upskill.model import Model, Parameters
from pytest_upskill.model.hosts import BY_PREFIX

_CURES = (
    (
        re.compile(
            r"context.?(length|size|window)|prompt is too long|too many (input )?tokens"
            r"|input (is )?too long|maximum context",
            re.IGNORECASE,
        ),
        (
            "lower --upskill-max-tokens, shorten the skill or the case, or serve the model with a "
            "larger context"
        ),
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
"""Patterns of error messages, each with the option that fixes the request."""

NO_TOOLS = re.compile(
    r"not support (tool|function)|support tool use"
    r"|(tool|function).{0,9}calling.{0,3} is not supported"
    r"|tools param requires|auto.? tool choice requires",
    re.IGNORECASE,
)
"""Messages of Ollama, OpenRouter, Groq, llama.cpp and vLLM where tools cannot be offered."""

CALL_TOOLS = (
    "choose a model that calls tools, or serve this one so that it does (llama-server: --jinja; "
    "vLLM: --enable-auto-tool-choice)"
)
"""How to fix that."""

FILTERED = re.compile(
    r"content[_ ](filter|management policy|policy[_ ]violation)|responsible ?ai", re.IGNORECASE
)
"""Messages of a content filter that refused the question or the answer."""

LOADING = re.compile(r"loading|starting up|warming up", re.IGNORECASE)
"""Messages of a host that is still loading the model."""


_FIELDS_OF = MappingProxyType(
    {
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "seed": ("seed",),
        "stop": ("stop", "stop_sequences"),
        "effort": ("effort", "reasoning", "reasoning_effort", "output_config"),
    }
)
"""The names that a message may have for each parameter."""


def cure(said: str, parameters: Parameters) -> str:
    """Return how to fix a request that a host refuses, "" if unknown.

    Args:
        said: The message of the host.
        parameters: What the request said beside the question.
    """
    for entry in parameters.entries:
        key = entry.partition("=")[0]
        names = _FIELDS_OF.get(key, (key.removeprefix("body."),))
        if any(re.search(rf"(?<![a-z_]){re.escape(name)}(?![a-z_])", said) for name in names):
            return f"leave out --upskill-param {entry} for this model, or change it"
    return next((cure for words, cure in _CURES if words.search(said)), "")


def refused_parameter(model: Model) -> str | None:
    """Return which parameter a model is known to refuse, and what to do; None for none."""
    host, given = model.vendor, model.parameters
    if host is None:
        known = BY_PREFIX.get(model.provider)
        if known and known.wire == "anthropic" and given.seed is not None:
            return (
                f"--upskill-param: Anthropic's format, in which {model.name} is asked, has no "
                "seed: set it for other models only, as in LABEL:seed=..."
            )
        return None
    refused = set(host.refuses)
    if given.effort != "none" and model.always_reasons and host.prefix in {"openai", "github"}:
        refused |= {"temperature", "top_p"}
    keys = [entry.partition("=")[0] for entry in given.entries]
    wrong = [key for key in keys if key in refused]
    if not wrong:
        return None
    return (
        f"--upskill-param: {host.title} refuses {' and '.join(wrong)} for {model.name}: set "
        f"{'it' if len(wrong) == 1 else 'them'} for other models only, as in LABEL:{wrong[0]}=..."
    )
