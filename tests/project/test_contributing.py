"""The map of the tests in CONTRIBUTING.md is complete."""

from __future__ import annotations

import re

from tests.pages import CHECKOUT

TESTS = CHECKOUT / "tests"


def test_every_module_that_tests_share_is_in_the_table() -> None:
    _, _, section = (CHECKOUT / "CONTRIBUTING.md").read_text("utf-8").partition("## The tests\n")
    table = "".join(line for line in section.splitlines() if line.startswith("| `"))

    shared = {file.name for file in TESTS.glob("*.py")} - {"__init__.py", "test_layers.py"}

    assert set(re.findall(r"`(\w+\.py)`", table)) == shared


def test_every_folder_of_tests_is_one_of_the_package() -> None:
    folders = {file.parent.name for file in TESTS.glob("*/test_*.py")}

    package = {folder.name for folder in (CHECKOUT / "pytest_upskill").iterdir()}

    assert folders - package == {"project"}
