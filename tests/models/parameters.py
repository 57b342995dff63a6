"""Parameters of a request: set them, and find them in what is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_upskill.models import Model, parse_model
from pytest_upskill.models.parameters import read_parameters


def parametrized(spec: str, *entries: str) -> Model:
    return replace(parse_model(spec), parameters=read_parameters(entries)[""])


def parameters_in(body: dict[str, Any]) -> dict[str, Any]:
    usual = {"model", "messages", "system", "max_tokens", "max_completion_tokens"}
    return {name: value for name, value in body.items() if name not in usual}
