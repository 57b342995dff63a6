"""Models: how they are named, the hosts that are known by name, and parameters of requests."""

from __future__ import annotations

from pytest_upskill.model.grammar import ALIASES, parse_model, parse_models
from pytest_upskill.model.model import AGENTS, Model, ModelError, server
from pytest_upskill.model.parameters import Parameters

__all__ = [
    "AGENTS",
    "ALIASES",
    "Model",
    "ModelError",
    "Parameters",
    "parse_model",
    "parse_models",
    "server",
]
