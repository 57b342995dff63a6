"""Validation of JSON Schemas, draft 2020-12, and of values against them."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match, relevance
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from pytest_upskill.project.messages import did_you_mean

MAX_VIOLATIONS = 20

_KEYWORDS = Draft202012Validator.VALIDATORS.keys()
"""The keywords that demand something."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Check that a schema is valid and has no references to other documents.

    Raises:
        ValueError: It is not; the message is one line with the place in the schema.
    """
    if problem := _syntax_problem(schema):
        raise ValueError(f"not a JSON Schema: {problem}")
    resource = DRAFT202012.create_resource(schema)
    base = resource.id() or ""
    _check_parts(resource, Registry().with_resource(base, resource).crawl().resolver(base))


def schema_violations(schema: Mapping[str, Any], value: object) -> list[str]:
    """Return the violations of a schema by a value, the most relevant first.

    Returns:
        At most `MAX_VIOLATIONS` lines, ``$.path: message``.
    """
    # The empty registry keeps references from being fetched over the network.
    validator = Draft202012Validator(schema, registry=Registry())
    errors = sorted(validator.iter_errors(value), key=relevance, reverse=True)
    return [f"{error.json_path}: {error.message}" for error in errors[:MAX_VIOLATIONS]]


def _syntax_problem(schema: object) -> str:
    """Return what the metaschema says against a schema, with its place; "" if nothing."""
    metaschema = Draft202012Validator(
        Draft202012Validator.META_SCHEMA,
        # Validates regular expressions too.
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )
    error = best_match(metaschema.iter_errors(schema))
    if error is None:
        return ""
    # If the type of the value fits only one alternative, report that alternative's error.
    type_matches = [each for each in error.context or () if each.validator != "type"]
    reported = type_matches[0] if len(type_matches) == 1 else error
    return f"{error.json_path}: {reported.message}"


def _check_parts(resource: Resource[Any], resolver: Any) -> None:
    """Check that a schema has no misspelled keyword, and that references lead to schemas in it."""
    contents = resource.contents
    for key in contents if isinstance(contents, Mapping) else ():
        if key not in _KEYWORDS and (meant := did_you_mean(key, _KEYWORDS, 0.8)):
            raise ValueError(f"not a JSON Schema: unknown keyword {key!r}{meant}")
        if key not in {"$ref", "$dynamicRef"}:
            continue
        try:
            target = resolver.lookup(contents[key]).contents
        except (Unresolvable, ValueError):
            raise ValueError(f"{key} {contents[key]!r} points outside the schema") from None
        if problem := _syntax_problem(target):
            raise ValueError(f"{key} {contents[key]!r} leads to no schema: {problem}")
    for part in resource.subresources():
        _check_parts(part, resolver.in_subresource(part))
