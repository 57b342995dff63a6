"""Clients of the model providers. `Client` is what a plugin's client must be."""

from __future__ import annotations

from pytest_upskill.completion import Client

__all__ = ["Client"]
