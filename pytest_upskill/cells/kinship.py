"""Judges that are the model under test, or from its vendor, and so may favour its answers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_upskill.cells.cell import Cell

_VENDORS = (
    ("OpenAI", r"\b(chat)?gpt|\bo[1-9]\b|codex"),
    ("Anthropic", r"claude"),
    ("Google", r"gemini|gemma"),
    ("DeepSeek", r"deepseek"),
    ("Alibaba", r"qwen|qwq"),
    ("Mistral", r"(mi|mini|mag|pix|code|dev)stral|mixtral"),
    ("Meta", r"llama[-_ ]?\d|meta-llama"),
    ("Zhipu", r"\bglm\b|chatglm"),
    ("Moonshot", r"kimi|moonshot"),
    ("xAI", r"grok"),
    ("Microsoft", r"\bphi[-_]?\d"),
)
"""Vendors with patterns of the names of their models."""


def judge_warning(cells: Iterable[Cell]) -> str:
    """Return a warning about a judge that is akin to models under test, empty if it is not."""
    judged = [cell for cell in cells if cell.judged is not None]
    same = [cell.model for cell in judged if _name(cell.judge) == _name(cell.resolved)]
    vendors = {
        cell.model: vendor
        for cell in judged
        if (vendor := vendor_of(cell.judge)) and vendor == vendor_of(cell.resolved)
    }
    if same:
        who = f"{_listed(same)} judges its own answers"
    elif vendors:
        who = f"it is from {next(iter(vendors.values()))}, as is {_listed(vendors)}"
    else:
        return ""
    return f"warning: judge: {who}: choose a judge from another vendor, or label answers"


def vendor_of(model: str) -> str:
    """Return who made a model, by its full name; empty if the name does not tell."""
    name = _name(model).lower()
    return next((vendor for vendor, pattern in _VENDORS if re.search(pattern, name)), "")


def _name(model: str) -> str:
    """Return the name of a model without its host, server and parameters."""
    name = model.partition(" ")[0].partition(":")[2] or model
    return name[:1] + name[1:].partition("@")[0]


def _listed(labels: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(labels))
