"""Checks that a plugin decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """A key of ``expected`` that a plugin claims; the plugin's hook decides it."""

    name: str
    """The key."""
    value: Any
    """The value of the key in the case file."""
