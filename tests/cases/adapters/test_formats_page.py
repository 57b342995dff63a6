"""The part of docs/formats.md about other tools is what their adapters declare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from pytest_upskill.cases.adapters import registry
from pytest_upskill.cases.adapters.adapter import Adapter, Reads, Shape
from pytest_upskill.cases.adapters.registry import ADAPTERS
from tests.pages import CHECKOUT

PAGE = CHECKOUT / "docs" / "formats.md"
BEGIN, END = "<!-- what follows is generated from the adapters -->\n", "<!-- end -->\n"


def shapes_in(annotation: Any) -> Iterator[type[Shape]]:
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        yield annotation
    for part in get_args(annotation):
        yield from shapes_in(part)


def keys_of(field: FieldInfo) -> list[str]:
    assert isinstance(field.validation_alias, AliasChoices)
    names = [str(name) for name in field.validation_alias.choices]
    plain = {
        name.replace("-", "_").lower(): name for name in reversed(names) if name == name.lower()
    }
    return list(reversed(plain)) or names[:1]


def rows(shape: type[Shape], above: str = "") -> Iterator[tuple[str, str]]:
    for field in shape.model_fields.values():
        names = [above + name for name in keys_of(field)]
        for mark in field.metadata:
            if isinstance(mark, Reads):
                yield ", ".join(f"`{name}`" for name in names), mark.meaning
        for inner in shapes_in(field.annotation):
            if measured := getattr(inner, "measured", ""):
                yield ", ".join(f"`{name}`" for name in names), measured
            if inner is not shape:
                yield from rows(inner, f"{names[0]}.")


def section(adapter: Adapter) -> str:
    meanings: dict[str, list[str]] = {}
    for names, meaning in rows(adapter.shape):
        meanings.setdefault(meaning, []).append(names)
    table = "\n".join(f"| {', '.join(names)} | {what} |" for what, names in meanings.items())
    places = ", ".join(f"`{place}`" for place in adapter.places)
    language = "json" if adapter.example.startswith(("{", "[")) else "text"
    return (
        f"### {adapter.tool}\n\nRead: {adapter.about}. Files: {places}.\n\n"
        f"```{language}\n{adapter.example}```\n\n| key | meaning |\n|---|---|\n{table}\n"
    )


def test_the_page_shows_what_the_adapters_declare() -> None:
    page = PAGE.read_text("utf-8")
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    declared = "\n" + "\n".join(map(section, ADAPTERS)) + "\n"

    assert page[begin:end] == declared, f"put this into docs/formats.md:\n{declared}"


SUFFIXES = {"{": ".json", "[": ".json", "-": ".md"}
ALONE = [adapter for adapter in ADAPTERS if not adapter.is_folder]
"""Adapters of files that hold a case without others beside them."""


@pytest.mark.parametrize("adapter", ALONE, ids=lambda adapter: adapter.tool)
def test_an_example_is_read_by_its_adapter(adapter: Adapter) -> None:
    is_table = "," in adapter.example.partition("\n")[0]
    suffix = SUFFIXES.get(adapter.example[0], ".csv" if is_table else ".yaml")

    reading = registry.read(Path(f"named{suffix}"), adapter.example, adapters=ADAPTERS)

    assert reading is not None
    assert reading.adapter is adapter
