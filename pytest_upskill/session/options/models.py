"""The models that options and the ini file choose, by name, alias or base URL."""

from __future__ import annotations

import pytest

from pytest_upskill.model import ALIASES, Model, ModelError, parse_model, parse_models, server
from pytest_upskill.sanitize.redaction import without_credentials
from pytest_upskill.session.options.values import value_of


def models_of(config: pytest.Config) -> tuple[Model, ...]:
    """Return the chosen models.

    Raises:
        pytest.UsageError: There is none, or a name cannot be parsed.
    """
    try:
        models = parse_models(
            value_of(config, "models"),
            aliases={**ALIASES, **_aliases(config)},
            default_base_url=_base_url(config),
        )
    except ModelError as error:
        raise pytest.UsageError(f"--upskill-models: {error}") from None
    if not models:
        raise pytest.UsageError("--upskill-models: no model given: write a name, such as offline")
    return models


def read_model(config: pytest.Config, name: str) -> Model:
    """Return a model by its name, with the aliases and the base URL of the settings.

    Raises:
        ModelError: The name cannot be read.
    """
    return parse_model(
        name, aliases={**ALIASES, **_aliases(config)}, default_base_url=_base_url(config)
    )


def judge_of(config: pytest.Config) -> Model | None:
    """Return the chosen judge; None for none.

    Raises:
        pytest.UsageError: Its name cannot be parsed, or it is not a language model.
    """
    given = value_of(config, "judge")
    if not given:
        return None
    try:
        judge = read_model(config, given)
    except ModelError as error:
        raise pytest.UsageError(f"--upskill-judge: {error}") from None
    if judge.provider == "offline":
        raise pytest.UsageError(
            "--upskill-judge: offline is not a language model and cannot judge: choose another"
        )
    return judge


def _base_url(config: pytest.Config) -> str | None:
    url: str | None = value_of(config, "base_url") or None
    try:
        return url and server(url)
    except ValueError:
        mark = "" if "://" in (url or "") else "://"
        shown = without_credentials(f"{mark}{url}").removeprefix(mark)
        raise pytest.UsageError(
            f"--upskill-base-url: {shown!r} is not the URL of a server: write it as in http://127.0.0.1:8080/v1"
        ) from None


def _aliases(config: pytest.Config) -> dict[str, str]:
    aliases = {}
    for line in config.getini("upskill_aliases"):
        name, equals, target = (part.strip() for part in line.partition("="))
        if not (name and equals and target):
            raise pytest.UsageError(
                f"upskill_aliases: bad line {without_credentials(line)!r}: write 'name = model'"
            )
        aliases[name.lower()] = target
    return aliases
