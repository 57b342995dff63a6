"""The maps in CONTRIBUTING.md and the docs lead somewhere, and the one of the tests is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import CHECKOUT, PAGES

TESTS = CHECKOUT / "tests"
PACKAGE = CHECKOUT / "pytest_upskill"
CONTRIBUTING = CHECKOUT / "CONTRIBUTING.md"
HOW_IT_WORKS = CHECKOUT / "docs" / "how-it-works.md"
PATH = re.compile(r"`([\w./-]+(?:/|\.py))`")


@pytest.mark.parametrize("page", [CONTRIBUTING, HOW_IT_WORKS], ids=lambda page: page.stem)
def test_every_path_on_a_page_for_contributors_exists(page: Path) -> None:
    paths = PATH.findall(page.read_text("utf-8"))

    assert paths
    tops = (CHECKOUT, PACKAGE, TESTS)
    assert [path for path in paths if not any((top / path).exists() for top in tops)] == []


def test_every_module_of_ours_that_a_page_names_exists() -> None:
    named = {
        path
        for page in PAGES
        for path in re.findall(
            r"\b(?:pytest_upskill|tests|benchmarks)/[\w/]+\.py", page.read_text("utf-8")
        )
    }

    assert "tests/answers/slow_server.py" in named
    assert [path for path in sorted(named) if not (CHECKOUT / path).exists()] == []


def test_every_name_that_shows_the_way_is_in_a_file_of_its_row() -> None:
    rows = [row for row in _section("Find your way").splitlines() if row.startswith("| ")]

    lost = [
        name
        for row in rows
        for name in re.findall(r"`(\w+)`", row)
        if not any(
            re.search(rf"\b{name}\b", (PACKAGE / path).read_text("utf-8")) for path in _modules(row)
        )
    ]

    assert rows
    assert lost == []


def test_every_module_that_tests_share_is_in_the_table() -> None:
    table = "".join(row for row in _section("The tests").splitlines() if row.startswith("| `"))

    shared = {file.name for file in TESTS.glob("*.py")} - {"__init__.py", "test_layers.py"}

    assert set(re.findall(r"`(\w+\.py)`", table)) == shared


def test_every_module_of_the_largest_folder_is_in_its_table() -> None:
    modules = {f"session/{file.name}" for file in (PACKAGE / "session").glob("[!_]*.py")}

    assert modules == {path for path in PATH.findall(_section("The map")) if path in modules}


def test_every_folder_of_tests_is_one_of_the_package() -> None:
    folders = {file.parent.name for file in TESTS.glob("*/test_*.py")}

    package = {folder.name for folder in PACKAGE.iterdir()}

    assert folders - package == {"shipped"}


def _section(heading: str) -> str:
    _, _, rest = CONTRIBUTING.read_text("utf-8").partition(f"## {heading}\n")
    return rest.partition("\n## ")[0]


def _modules(row: str) -> list[str]:
    return [path for path in PATH.findall(row) if (PACKAGE / path).is_file()]
