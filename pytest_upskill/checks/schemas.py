"""JSON Schema, draft 2020-12: is it one, and what of a value departs from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match, relevance
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

MAX_DEPARTURES = 20


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is not a JSON Schema, or refers to what it does not hold.

    Raises:
        ValueError: One line: where in the schema, and what is wrong there.
    """
    metaschema = Draft202012Validator(
        Draft202012Validator.META_SCHEMA,
        # Patterns are checked as a format.
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )
    if error := best_match(metaschema.iter_errors(schema)):
        # Of what a value may be, say what it was meant to be, not what its type rules out.
        fitting = [each for each in error.context or () if each.validator != "type"]
        told = fitting[0] if len(fitting) == 1 else error
        raise ValueError(f"not a JSON Schema: {error.json_path}: {told.message}")
    resource = DRAFT202012.create_resource(schema)
    base = resource.id() or ""
    resolver = Registry().with_resource(base, resource).crawl().resolver(base)
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise ValueError(f"$ref {reference!r} leads out of the schema") from None


def departures(schema: Mapping[str, Any], value: object) -> list[str]:
    """List where ``value`` departs from ``schema``, the most telling first.

    Returns:
        ``$.path: message``, at most `MAX_DEPARTURES` of them.
    """
    # An empty registry: without one, references would be fetched from the network.
    validator = Draft202012Validator(schema, registry=Registry())
    errors = sorted(validator.iter_errors(value), key=relevance, reverse=True)
    return [f"{error.json_path}: {error.message}" for error in errors[:MAX_DEPARTURES]]


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)
