"""Every promise on the page about security is held by a test."""

from __future__ import annotations

import re

from tests.pages import CHECKOUT

PAGE = CHECKOUT / "docs" / "security.md"


def test_the_tests_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text("utf-8")))

    source = "".join(path.read_text("utf-8") for path in (CHECKOUT / "tests").glob("test_*.py"))

    assert len(named) > 30
    assert named <= set(re.findall(r"^def (test_\w+)", source, re.MULTILINE))


def test_every_row_of_a_table_of_attacks_names_its_test() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    header = re.compile(r"\| attack \|.*\| test \|")

    rows = [
        row
        for start, line in enumerate(lines)
        if header.fullmatch(line)
        for row in _rows(lines[start + 2 :])
    ]

    assert len(rows) > 30
    assert [row for row in rows if not re.search(r"`test_\w+` \|$", row)] == []


def _rows(lines: list[str]) -> list[str]:
    end = next((index for index, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return lines[:end]
