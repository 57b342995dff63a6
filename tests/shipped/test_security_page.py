"""Every promise on the page about security is held by a test."""

from __future__ import annotations

import re

from tests.pages import CHECKOUT
from tests.shipped.promises import ATTACKS, OTHERS
from tests.unprotected import REMOVALS

HOLDING = {name for rows in ATTACKS.values() for names in rows.values() for name in names} | {
    *OTHERS
}
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


def test_the_tests_that_hold_promises_exist() -> None:
    source = "".join(path.read_text("utf-8") for path in (CHECKOUT / "tests").rglob("test_*.py"))

    assert set(re.findall(r"^def (test_\w+)", source, re.MULTILINE)) >= HOLDING


def test_every_protection_can_be_removed_to_see_its_test_fail() -> None:
    edits = {edit for removal in REMOVALS for edit in removal.edits}
    stale = [
        edit
        for edit in edits
        if (CHECKOUT / "pytest_upskill" / edit.file).read_text("utf-8").count(edit.old) != 1
    ]

    assert {removal.test for removal in REMOVALS} | NOTHING_TO_REMOVE == HOLDING
    assert stale == []


def test_every_row_of_a_table_of_attacks_has_its_tests() -> None:
    rows: dict[str, set[str]] = {}
    section, in_table = "", False
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        in_table = line.startswith("| attack |") or (in_table and line.startswith("|"))
        if in_table and not line.startswith(("| attack |", "|---")):
            rows.setdefault(section, set()).add(line.split("|")[1].strip())

    assert rows == {section: set(held) for section, held in ATTACKS.items()}
