"""The parameters that the user sets, given to the models and to the judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from pytest_upskill.model import Model, Parameters
from pytest_upskill.model.parameters import ParameterError, read_parameters
from pytest_upskill.sanitize.redaction import Redactor
from pytest_upskill.sanitize.suggestion import did_you_mean

_JUDGE = "judge"
"""Label of the judge's parameters."""


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
        pytest.UsageError: A parameter is invalid, or of nobody.
    """
    try:
        given = read_parameters(entries)
    except ParameterError as error:
        raise pytest.UsageError(f"--upskill-param: {error}") from None
    _refuse_unknown(given, [*(model.label for model in models), *([_JUDGE] if judge else [])])
    for model in models:
        if model.provider == "offline" and model.label in given:
            raise pytest.UsageError(
                f"--upskill-param: {model.label} is not a language model and takes no parameters"
            )
    everyone = given.get("", Parameters())
    for model in models:
        own = given.get(model.label, Parameters()).with_defaults(everyone)
        if model.runs_program and replace(own, max_tokens=None):
            raise pytest.UsageError(
                f"--upskill-param: {model.agent} chooses its parameters itself: remove them for "
                f"{model.label}, or write loop: for an agent that sends them"
            )
    told = tuple(
        model
        if model.provider == "offline"
        else replace(model, parameters=given.get(model.label, Parameters()).with_defaults(everyone))
        for model in models
    )
    return told, judge and replace(judge, parameters=given.get(_JUDGE, Parameters()))


def _refuse_unknown(given: Mapping[str, Parameters], labels: list[str]) -> None:
    for label in given:
        if label and label not in labels:
            meant = did_you_mean(label, labels)
            raise pytest.UsageError(
                f"--upskill-param: no model has the label {label!r}{meant}: write one of "
                f"{', '.join(labels)}, or no label for all models"
            )


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
