"""The README's pictures show what a run prints and reports today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import CHECKOUT
from tests.shipped.pictures import (
    IMAGES,
    PAGE,
    PAGE_TEXT,
    TERMINAL,
    page_text,
    run_examples,
    terminal_picture,
)

AGAIN = "make them again: python -m tests.shipped.pictures"


def test_the_pictures_are_current(tmp_path: Path) -> None:
    run = run_examples(tmp_path)

    assert terminal_picture(run) == (IMAGES / TERMINAL).read_text("utf-8"), AGAIN
    assert page_text(run) == (IMAGES / PAGE_TEXT).read_text("utf-8"), AGAIN


@pytest.mark.parametrize("name", [TERMINAL, PAGE])
def test_the_readme_shows_each_picture(name: str) -> None:
    assert f"(docs/images/{name})" in (CHECKOUT / "README.md").read_text("utf-8")


def test_no_picture_loads_anything() -> None:
    assert not re.search(r"url\(.?http|@import|href=", (IMAGES / TERMINAL).read_text("utf-8"))
