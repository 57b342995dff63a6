"""Models: how they are named, and the hosts that are known by name."""

from __future__ import annotations

from pytest_upskill.model.grammar import ALIASES, parse_model, parse_models
from pytest_upskill.model.model import AGENTS, Model, ModelError, server

__all__ = ["AGENTS", "ALIASES", "Model", "ModelError", "parse_model", "parse_models", "server"]
