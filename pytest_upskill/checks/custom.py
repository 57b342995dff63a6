"""Checks that a plugin decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """A key of ``expected`` that a plugin claims; its hook decides."""

    name: str
    value: Any
    """What the case file says there."""
