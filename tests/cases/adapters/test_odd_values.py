"""Whatever stands in a file, an adapter reads it or says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.adapters.adapter import Adapter
from pytest_upskill.cases.adapters.registry import ADAPTERS, read_document
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.cases.source.formats import PARSERS
from pytest_upskill.cases.to_cases import CaseMaker
from tests.cases.adapters.examples import example_of, suffix_of
from tests.evals import skill

OWNER = skill("csv", lambda _: ())
ODD: tuple[Any, ...] = (None, True, 3, "odd", [], {}, [3], ["odd"], {"odd": 3}, [[]], [{}])


def with_odd_parts(value: Any) -> Iterator[Any]:
    """Yield a document once for each of its parts and each odd value in its place."""
    yield from ODD
    if not isinstance(value, list | dict):
        return
    items = enumerate(value) if isinstance(value, list) else value.items()
    for key, part in list(items):
        inner = with_odd_parts(part) if isinstance(part, list | dict) else iter(ODD)
        for odd in inner:
            copy = value.copy()
            copy[key] = odd
            yield copy


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.tool)
def test_no_value_breaks_an_adapter(adapter: Adapter) -> None:
    text = example_of(adapter)
    example = PARSERS[suffix_of(text)](text).value
    for document in with_odd_parts(example):
        reading = read_document(
            adapter, PARSERS[".json"](json.dumps(document)), adapter.beside(Path("a"), document)
        )
        assert isinstance(reading.fits, bool)
        assert isinstance(reading.skill, str)
        with suppress(BadFile):
            CaseMaker(reading=reading, owner=OWNER, find=lambda _: None).file()
