"""The published JSON Schemas of the case file and of the report, made from their types."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from pytest_upskill.cases.skill_meta.expected import Entry
from pytest_upskill.cases.skill_meta.schema import CaseEntry, CaseFile
from pytest_upskill.report.files.json import Document

URL = "https://json.schemastore.org/skill_meta.json"
"""The ``$id`` of the schema: its future address at SchemaStore."""

_DOCUMENT: TypeAdapter[Any] = TypeAdapter(
    CaseFile | Annotated[list[CaseEntry], Field(min_length=1)]
)


class _Draft7(GenerateJsonSchema):
    """Generator for draft-07, with descriptions from docstrings and without titles of fields."""

    schema_dialect = "http://json-schema.org/draft-07/schema#"

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False

    # pydantic's use_attribute_docstrings would read the source in every run of pytest.
    def model_schema(self, schema: Any) -> dict[str, Any]:
        described = super().model_schema(schema)
        for key, text in _docstrings(schema["cls"]):
            described["properties"][key]["description"] = text
        return described


def _docstrings(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the key and the docstring of each field of a model."""
    for base in model.__bases__:
        if issubclass(base, Entry) and base is not Entry:
            yield from _docstrings(base)
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    for field, below in pairwise(definition.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield model.model_fields[name].alias or name, inspect.cleandoc(text)


def case_schema() -> str:
    """Return the text of the schema, in draft-07, the latest draft that editors support widely.

    It follows https://github.com/SchemaStore/schemastore/blob/master/CONTRIBUTING.md.
    """
    schema = _DOCUMENT.json_schema(
        by_alias=True, schema_generator=_Draft7, ref_template="#/definitions/{model}"
    )
    definitions = schema.pop("$defs")
    schema = {
        "$schema": _Draft7.schema_dialect,
        "$id": URL,
        "title": "test cases of an agent skill",
        "description": "What a model must answer with an agent skill in its context",
        **schema,
        "definitions": definitions,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def report_schema() -> str:
    """Return the text of the schema of a report."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TypeAdapter(Document).json_schema(mode="serialization"),
        "title": "Report of pytest-upskill, format 1",
    }
    return json.dumps(schema, indent=1) + "\n"
