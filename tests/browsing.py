"""A real browser, for tests that import its fixtures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

_SWITCHES = [
    # As root, and where no name space may be made, Chromium has no sandbox of its own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def open_browser(playwright: Playwright) -> Browser:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))))
    return playwright.chromium.launch(executable_path=program, args=_SWITCHES)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = open_browser(playwright)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()
