"""All that a run of pytest inside a test may import, imported beforehand."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest_upskill

_LIBRARIES = (
    "anthropic.resources.messages",
    "anyio._backends._asyncio",
    "genai_prices.data",
    "genai_prices.decompose",
    "genai_prices.validation",
    "httpcore2",
    "openai.resources.chat.completions",
    "tenacity",
    "xdist.dsession",
    "xdist.remote",
)
"""What our modules import only where they need it."""


def import_all() -> None:
    """Import our modules, and the libraries whose import takes long."""
    for module in pkgutil.walk_packages(pytest_upskill.__path__, "pytest_upskill."):
        import_module(module.name)
    for name in _LIBRARIES:
        import_module(name)
