"""Every promise on the page about security is held by a test."""

from __future__ import annotations

import re

from tests.pages import CHECKOUT
from tests.unprotected import REMOVALS

PAGE = CHECKOUT / "docs" / "security.md"
NOTHING_TO_REMOVE = {
    # Nothing in the package treats these answers differently from others.
    "test_a_header_that_does_not_exist_is_the_answers_mistake",
    "test_an_error_that_reads_like_a_missing_header_is_the_answers_mistake",
    # Each run has a folder of its own; there is no step that could be left out.
    "test_runs_at_the_same_time_do_not_meet",
    # Folders are read one after the other, however deep they are.
    "test_folders_deeper_than_python_can_recurse_do_not_end_the_run",
    # They show what succeeds, and what no protection prevents.
    "test_a_hostile_answer_gets_nothing_where_the_level_says_so",
    "test_what_the_docs_admit_to_be_possible_is_possible",
}


def test_the_tests_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text("utf-8")))

    source = "".join(path.read_text("utf-8") for path in (CHECKOUT / "tests").rglob("test_*.py"))

    assert len(named) > 30
    assert named <= set(re.findall(r"^def (test_\w+)", source, re.MULTILINE))


def test_every_protection_can_be_removed_to_see_its_test_fail() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text("utf-8")))

    edits = {edit for removal in REMOVALS for edit in removal.edits}
    stale = [
        edit
        for edit in edits
        if (CHECKOUT / "pytest_upskill" / edit.file).read_text("utf-8").count(edit.old) != 1
    ]

    assert named == {removal.test for removal in REMOVALS} | NOTHING_TO_REMOVE
    assert stale == []


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
