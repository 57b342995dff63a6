"""Messages of pydantic's errors, with line and column of the value in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic_core import ErrorDetails

from pytest_upskill.cases.source.json import Document, JsonPath
from pytest_upskill.cases.source.problems import Problem, shown

MESSAGES: Mapping[str, str] = {
    "bool_type": "must be true or false, got {got}",
    "dict_type": "must be an object, got {got}",
    "extra_forbidden": "unknown key",
    "float_type": "must be a number, got {got}",
    "greater_than_equal": "must be at least {ge:g}, got {got}",
    "int_type": "must be a whole number, got {got}",
    "less_than_equal": "must be at most {le:g}, got {got}",
    "list_type": "must be a list, got {got}",
    "literal_error": "must be {expected}, got {got}",
    "missing": "missing",
    "model_type": "must be an object, got {got}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "string_type": "must be a string, got {got}",
    "too_short": "must not be empty",
    "value_error": "{error}",
}
"""Messages by pydantic's type of error, with the fields of its context."""


def translate_error(
    document: Document,
    details: ErrorDetails,
    *,
    meant: Callable[[JsonPath], str],
    messages: Mapping[str, str] = MESSAGES,
) -> Problem:
    """Translate an error of pydantic into a problem with line and column.

    Args:
        document: The document that was validated.
        details: The error.
        meant: Returns what to add to the message about the unknown key at a path.
        messages: As `MESSAGES`.
    """
    kind, steps = details["type"], details["loc"]
    path: JsonPath = ()
    for step in steps:  # some, such as the branch of a union, are not in the file
        if (*path, step) in document.offsets:
            path = (*path, step)
    message = messages.get(kind, "{msg}")
    what = message.format(got=shown(details["input"]), msg=details["msg"], **details.get("ctx", {}))
    if kind == "extra_forbidden":
        return document.problem(path, what + meant(path), key=True)
    return document.problem(path, what, missing=str(steps[-1]) if kind == "missing" else None)
