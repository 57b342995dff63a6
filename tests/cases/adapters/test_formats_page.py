"""The part of docs/formats.md about other tools is what their adapters declare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.cases.adapters import registry
from pytest_upskill.cases.adapters.adapter import Adapter, Keys, Reader
from pytest_upskill.cases.adapters.registry import ADAPTERS
from tests.cases.adapters.examples import PAGE, example_of, suffix_of
from tests.pages import OUT_OF_DATE

BEGIN, END = "<!-- what follows is generated from the adapters -->\n", "<!-- end -->\n"


def rows(keys: Keys, above: str = "") -> Iterator[tuple[str, str]]:
    for names, reader in keys.items():
        found = [f"{above}{name}" for name in names.replace("|", " ").split()]
        if isinstance(reader, Reader):
            yield ", ".join(f"`{key}`" for key in found), reader.meaning
        else:
            yield from rows(reader, f"{found[0]}.")


def section(adapter: Adapter) -> str:
    meanings: dict[str, list[str]] = {}
    for names, meaning in rows(adapter.keys):
        if meaning:
            meanings.setdefault(meaning, []).append(names)
    table = "\n".join(f"| {', '.join(names)} | {what} |" for what, names in meanings.items())
    places = ", ".join(f"`{place}`" for place in adapter.places)
    example = example_of(adapter)
    language = "json" if example.startswith(("{", "[")) else "text"
    return (
        f"### {adapter.tool}\n\nRead: {adapter.about}. Files: {places}.\n\n"
        f"```{language}\n{example}```\n\n| key | meaning |\n|---|---|\n{table}\n"
    )


def as_declared(page: str) -> str:
    """Return the page with a section for each adapter; examples are those that it has."""
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page[:begin] + "\n" + "\n".join(map(section, ADAPTERS)) + "\n" + page[end:]


def test_the_page_shows_what_the_adapters_declare() -> None:
    page = PAGE.read_text("utf-8")

    assert page == as_declared(page), OUT_OF_DATE


ALONE = [adapter for adapter in ADAPTERS if not adapter.is_folder]
"""Adapters of files that hold a case without others beside them."""


@pytest.mark.parametrize("adapter", ALONE, ids=lambda adapter: adapter.tool)
def test_an_example_is_read_by_its_adapter(adapter: Adapter) -> None:
    example = example_of(adapter)

    reading = registry.read(Path(f"named{suffix_of(example)}"), example, anywhere=True)

    assert reading is not None
    assert reading.adapter is adapter
