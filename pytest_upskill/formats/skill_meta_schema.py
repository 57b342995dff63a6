"""The JSON Schema of ``skill_meta.json``, for editors: generated from the models, and shipped."""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from pytest_upskill.formats.skill_meta_entries import CaseEntry, CaseFile

FILE = "skill_meta.schema.json"

_DOCUMENT: TypeAdapter[Any] = TypeAdapter(
    CaseFile | Annotated[list[CaseEntry], Field(min_length=1)]
)


class _Untitled(GenerateJsonSchema):
    """Leaves out titles that only repeat the name of a field."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False


def generate_schema() -> str:
    """Write the schema, draft 2020-12, as it is shipped."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": FILE,
        "title": "Test cases of an agent skill (pytest-upskill)",
        **_DOCUMENT.json_schema(by_alias=True, schema_generator=_Untitled),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def shipped_schema() -> str:
    """Read the schema that this package ships."""
    return files("pytest_upskill.formats").joinpath(FILE).read_text("utf-8")


def write_schema(path: Path) -> int:
    """Write the shipped schema to a file; give the exit status of a program that does."""
    try:
        path.write_text(shipped_schema(), "utf-8")
    except OSError as error:
        sys.stderr.write(f"ERROR: --upskill-write-schema: {path}: {error.strerror}\n")
        return 4
    return 0
