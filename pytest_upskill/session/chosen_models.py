"""The models that options and the ini file choose, with their parameters and prices."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pytest

from pytest_upskill.answers.prices import OwnPrice
from pytest_upskill.models import Model, ModelError
from pytest_upskill.models.keys import PROTOCOL_HEADERS, secrets
from pytest_upskill.models.model import ALIASES, Names, server
from pytest_upskill.models.parameters import ParameterError, Parameters, read_parameters
from pytest_upskill.project.messages import did_you_mean
from pytest_upskill.project.redaction import Redactor, split_userinfo, without_credentials
from pytest_upskill.session.options import place_of, usage_errors, value_of

_JUDGE = "judge"
"""Label of the judge's parameters."""

_HEADER = re.compile(
    r"(?P<label>[\w.-]+)\s*:\s*(?P<name>[\w-]+)\s*=\s*\$?(?P<variable>[A-Za-z_]\w*)", re.ASCII
)
_ALIAS = re.compile(r"\s*(?P<name>[^=]*[^=\s])\s*=\s*(?P<model>.*\S)\s*")
_RATE = r"\d*\.?\d+"
_PRICE = re.compile(
    rf"(?P<label>[^\s=]+)\s*=\s*(?P<in>{_RATE})\s*/\s*(?P<out>{_RATE})"
    rf"(\s+cached\s+(?P<cached>{_RATE}))?"
)


def models_and_judge(config: pytest.Config) -> tuple[tuple[Model, ...], Model | None]:
    """Return the chosen models and the judge, None for none, with their parameters.

    Raises:
        pytest.UsageError: There is no model, a name cannot be parsed, or a parameter is invalid.
    """
    names, judge_name, entries = (value_of(config, key) for key in ("models", "judge", "params"))
    with usage_errors(ModelError, place_of(config, "models")):
        models = _names(config).models(names)
    # An empty entry is probably an unset variable of a script, whose models would not be measured.
    if not models or any(not name.strip(", ") for name in names):
        raise pytest.UsageError("--upskill-models: no model given: write a name, such as offline")
    headers = _headers(config)
    models = tuple(replace(each, headers=headers.get(each.label, ())) for each in models)
    judge = None
    if judge_name:
        judge = read_model(config, judge_name, place_of(config, "judge"))
        if not judge.is_language_model:
            raise pytest.UsageError(
                "--upskill-judge: offline is not a language model and cannot judge: choose another"
            )
        judge = replace(judge, headers=headers.get(_JUDGE, ()))
    chosen = [*models, judge] if judge else models
    url = config.getoption("upskill_base_url", None) and _base_url(config)
    if url and all(model.base_url != split_userinfo(url)[0] for model in chosen):
        raise pytest.UsageError(
            "--upskill-base-url: only for models that name no host, and each of these does: write "
            "MODEL@URL to send one there, or remove the option"
        )
    refuse_secrets(entries, Redactor(secrets(chosen, os.environ)))
    return with_parameters(models, judge, entries)


def read_model(config: pytest.Config, name: str, option: str) -> Model:
    """Return a model by its name, with the aliases and the base URL of the settings.

    Raises:
        pytest.UsageError: The name, the value of ``option``, cannot be read.
    """
    with usage_errors(ModelError, option):
        return _names(config).model(name)


def with_parameters(
    models: tuple[Model, ...], judge: Model | None, entries: Iterable[str]
) -> tuple[tuple[Model, ...], Model | None]:
    """Return the models and the judge with their parameters.

    Parameters without a label are for every model of the trials, but not for the judge, whose
    answers should not depend on how the models are measured.

    Args:
        models: The models of the trials.
        judge: The judge; None for none.
        entries: Parameters, each as ``[LABEL:]KEY=VALUE``.

    Raises:
        pytest.UsageError: A parameter is invalid, or no model has its label.
    """
    with usage_errors(ParameterError, "--upskill-param"):
        given = read_parameters(entries)
        _check_labels(given, [*(model.label for model in models), *([_JUDGE] if judge else [])])
        configured = tuple(_model_with_parameters(model, given) for model in models)
    return configured, judge and replace(judge, parameters=given.get(_JUDGE, Parameters()))


def _check_labels(given: Iterable[str], labels: Sequence[str]) -> None:
    for label in given:
        if label and label not in labels:
            raise ParameterError(
                f"no model has the label {label!r}{did_you_mean(label, labels)}: write one of "
                f"{', '.join(labels)}, or no label for all models"
            )


def _model_with_parameters(model: Model, given: dict[str, Parameters]) -> Model:
    """Return a model of the trials with its parameters."""
    if not model.is_language_model:
        if model.label in given:
            raise ParameterError(f"{model.label} is not a language model and takes no parameters")
        return model
    own, of_all = given.get(model.label, Parameters()), given.get("", Parameters())
    parameters = own.with_defaults(of_all)
    if model.runs_program and replace(parameters, max_tokens=None):
        raise ParameterError(
            f"{model.agent} chooses its parameters itself: remove them for {model.label}, or write "
            "loop: for an agent that sends them"
        )
    return replace(model, parameters=parameters)


def refuse_secrets(entries: Iterable[str], redactor: Redactor) -> None:
    """Refuse parameters with a known key, because parameters are printed, recorded and reported.

    Args:
        entries: Parameters, each as ``[LABEL:]KEY=VALUE``.
        redactor: The redactor of the known keys.

    Raises:
        pytest.UsageError: A parameter contains a key.
    """
    for entry in entries:
        if redactor.redact(entry) != entry:
            name = redactor.redact(entry.partition("=")[0].strip())
            raise pytest.UsageError(
                f"--upskill-param: {name} contains a key from the environment or a URL, and would "
                "be printed and recorded: remove it, as keys are sent without it"
            )


def _lines(
    config: pytest.Config, key: str, pattern: re.Pattern[str], form: str
) -> Iterator[re.Match[str]]:
    """Yield the lines of an ini key, in parts.

    Raises:
        pytest.UsageError: A line has not the form of all.
    """
    for line in value_of(config, key):
        match = pattern.fullmatch(line)
        if match is None:
            # What follows may be a secret.
            start = line.partition("=")[0].strip()
            raise pytest.UsageError(f"upskill_{key}: bad line {start!r}: write {form}")
        yield match


def _headers(config: pytest.Config) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return further headers by label, each with the environment variable of its value.

    Raises:
        pytest.UsageError: A line cannot be read, or names a header that every request has.
    """
    headers: dict[str, tuple[tuple[str, str], ...]] = {}
    form = "'label: NAME = VARIABLE', with the environment variable that has the value"
    for match in _lines(config, "headers", _HEADER, form):
        if match["name"].lower() in PROTOCOL_HEADERS:
            raise pytest.UsageError(
                f"upskill_headers: bad line '{match['label']}: {match['name']}': every request has "
                "this header: remove the line"
            )
        entry = match["name"], match["variable"]
        headers[match["label"]] = (*headers.get(match["label"], ()), entry)
    return headers


def own_prices(config: pytest.Config) -> dict[str, OwnPrice]:
    """Return the user's prices by label of the model.

    Raises:
        pytest.UsageError: A line is not a price.
    """
    prices = {}
    form = "'label = IN/OUT' or 'label = IN/OUT cached RATE', in dollars per million tokens"
    for match in _lines(config, "prices", _PRICE, form):
        cached = float(match["cached"]) if match["cached"] else None
        price = OwnPrice(input=float(match["in"]), output=float(match["out"]), cached=cached)
        if cached is not None and cached > price.input:
            raise pytest.UsageError(
                f"upskill_prices: {match['label']}: cached tokens cannot cost more than others: "
                "write a lower price after 'cached'"
            )
        prices[match["label"]] = price
    return prices


def _names(config: pytest.Config) -> Names:
    """Return how the names of models are read, with the aliases and the base URL of the user."""
    lines = _lines(config, "aliases", _ALIAS, "'name = model'")
    own = {match["name"].lower(): match["model"] for match in lines}
    return Names({**ALIASES, **own}, _base_url(config))


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
