"""Validation of JSON Schemas, draft 2020-12, and of values against them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match, relevance
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

MAX_VIOLATIONS = 20


def check_schema(schema: Mapping[str, Any]) -> None:
    """Check that a schema is valid and has no references to other documents.

    Raises:
        ValueError: It is not; the message is one line with the place in the schema.
    """
    metaschema = Draft202012Validator(
        Draft202012Validator.META_SCHEMA,
        # Validates regular expressions too.
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )
    if error := best_match(metaschema.iter_errors(schema)):
        # If the type of the value fits only one alternative, report that alternative's error.
        type_matches = [each for each in error.context or () if each.validator != "type"]
        reported = type_matches[0] if len(type_matches) == 1 else error
        raise ValueError(f"not a JSON Schema: {error.json_path}: {reported.message}")
    resource = DRAFT202012.create_resource(schema)
    base = resource.id() or ""
    resolver = Registry().with_resource(base, resource).crawl().resolver(base)
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise ValueError(f"$ref {reference!r} points outside the schema") from None


def schema_violations(schema: Mapping[str, Any], value: object) -> list[str]:
    """Return the violations of a schema by a value, the most relevant first.

    Returns:
        At most `MAX_VIOLATIONS` lines, ``$.path: message``.
    """
    # The empty registry keeps references from being fetched over the network.
    validator = Draft202012Validator(schema, registry=Registry())
    errors = sorted(validator.iter_errors(value), key=relevance, reverse=True)
    return [f"{error.json_path}: {error.message}" for error in errors[:MAX_VIOLATIONS]]


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)
