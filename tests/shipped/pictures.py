"""Make the pictures of the README from a run of two example skills.

``python -m tests.shipped.pictures`` writes them to docs/images. ``test_pictures.py`` fails when
they no longer show what a run prints and reports.
"""

from __future__ import annotations

import html
import re
import shutil
import tempfile
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from tests.browsing import open_browser
from tests.pages import CHECKOUT
from tests.shipped.workflows import shell

IMAGES = CHECKOUT / "docs" / "images"
TERMINAL, PAGE, PAGE_TEXT = "terminal.svg", "report.png", "report.txt"

_SKILLS = ("git-commit-messages", "yaml-parsing")
_COMMAND = "pytest --upskill-models offline skills"
_COLUMNS = 100
_WINDOW = (1280, 610)
_DURATION = re.compile(r"\b\d+\.\d+ ?s\b")
_FONT_OF_ANOTHER_HOST = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


class Run(NamedTuple):
    """What a run printed, and its HTML report; durations are all the same."""

    printed: str
    report: str


def run_examples(folder: Path) -> Run:
    """Run the example skills in a folder, as the README shows it."""
    for name in _SKILLS:
        shutil.copytree(CHECKOUT / "example_skills" / name, folder / "skills" / name)
    options = "--no-header --color yes --upskill-html report.html"
    process = shell(f"{_COMMAND} {options}", folder, COLUMNS=str(_COLUMNS))
    assert process.returncode == 0, process.stdout
    shown = [line for line in process.stdout.splitlines() if "upskill report: " not in line]
    report = (folder / "report.html").read_text("utf-8")
    return Run(_DURATION.sub("1.00s", "\n".join(shown)), _DURATION.sub("1.0 s", report))


def terminal_picture(run: Run) -> str:
    """Draw what a run printed, as an SVG."""
    console = Console(record=True, width=_COLUMNS, file=StringIO())
    console.print(f"$ {_COMMAND}")
    console.print(Text.from_ansi(run.printed))
    svg = console.export_svg(title="pytest-upskill", unique_id="terminal")
    return _FONT_OF_ANOTHER_HOST.sub("", svg)


def page_text(run: Run) -> str:
    """Return the text of what the picture shows of the report."""
    body = re.sub("<(style|title).*?</\\1>", "", run.report, flags=re.DOTALL)
    lines = html.unescape(re.sub("<[^>]*>", "\n", body)).partition("Answers of ")[0].splitlines()
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines))) + "\n"


def main() -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        run = run_examples(Path(folder))
        (IMAGES / TERMINAL).write_text(terminal_picture(run), "utf-8")
        (IMAGES / PAGE_TEXT).write_text(page_text(run), "utf-8")
        width, height = _WINDOW
        page = open_browser(playwright).new_page(viewport={"width": width, "height": height})
        page.set_content(run.report)
        page.screenshot(path=IMAGES / PAGE)


if __name__ == "__main__":
    main()
