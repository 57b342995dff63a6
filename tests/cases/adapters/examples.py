"""The example of each adapter in docs/formats.md."""

from __future__ import annotations

import re

from pytest_upskill.cases.adapters.adapter import Adapter
from tests.pages import CHECKOUT

PAGE = CHECKOUT / "docs" / "formats.md"

_SUFFIXES = {"{": ".json", "[": ".json", "-": ".md"}


def example_of(adapter: Adapter) -> str:
    """Return the example of a tool's files."""
    found = re.search(
        rf"^### {re.escape(adapter.tool)}\n.*?```\w+\n(.*?)```\n",
        PAGE.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert found, f"add '### {adapter.tool}' with an example to docs/formats.md"
    return found[1]


def suffix_of(example: str) -> str:
    """Return the format of an example."""
    is_table = "," in example.partition("\n")[0]
    return _SUFFIXES.get(example[0], ".csv" if is_table else ".yaml")
