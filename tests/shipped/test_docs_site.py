"""The docs build as a site that everybody can read."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # no types
from playwright.sync_api import Browser, Page, ViewportSize

from tests.browsing import browser, page
from tests.pages import CHECKOUT, fences

__all__ = ["browser", "page"]

pytestmark = pytest.mark.slow

REPOSITORY = "https://github.com/owner/pytest-upskill"
SITE = "https://owner.github.io/pytest-upskill/"
DOCS = sorted((CHECKOUT / "docs").glob("*.md"))
WIDE, NARROW = ViewportSize(width=1280, height=900), ViewportSize(width=390, height=900)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The docs as they are published."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copy(CHECKOUT / "mkdocs.yml", folder)
    shutil.copytree(CHECKOUT / "docs", folder / "docs")
    process = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        env={**os.environ, "UPSKILL_REPOSITORY": REPOSITORY, "UPSKILL_SITE": SITE},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout
    return folder / "site"


def _built(site: Path, doc: Path) -> Path:
    return site / ("." if doc.stem == "index" else doc.stem) / "index.html"


# In one test, as the pages are built together: several workers would build them several times.
def test_every_page_shows_every_block_of_code_under_its_title(site: Path) -> None:
    for doc in DOCS:
        html = _built(site, doc).read_text("utf-8")
        written = fences(doc)

        assert not re.search("<p>[^<]*```", html), doc.name
        assert html.count("<pre>") == len(written), doc.name
        titles = re.findall(r'<span class="filename">([^<]*)</span>', html)
        assert titles == [fence.title for fence in written if fence.title is not None], doc.name


def test_the_site_has_the_workflows_that_pages_link_to(site: Path) -> None:
    assert (site / "workflows" / "replay.yml").exists()


class _Settings(yaml.SafeLoader):
    """Reads mkdocs.yml, whose ``!ENV`` names a variable of the environment."""


def _variable(loader: yaml.SafeLoader, node: yaml.SequenceNode) -> list[str]:
    return list(map(str, loader.construct_sequence(node)))


_Settings.add_constructor("!ENV", _variable)


def test_every_page_is_in_the_navigation() -> None:
    settings: Any = yaml.load((CHECKOUT / "mkdocs.yml").read_text("utf-8"), _Settings)

    named = [page for group in settings["nav"] for pages in group.values() for page in pages]
    assert sorted(named) == [page.name for page in DOCS]


def test_the_site_knows_its_address_and_its_repository(site: Path) -> None:
    html = (site / "quickstart" / "index.html").read_text("utf-8")

    assert f'rel="canonical" href="{SITE}quickstart/"' in html
    assert f'<a href="{REPOSITORY}" title="Go to repository"' in html


@pytest.mark.needs("chromium")
def test_the_copy_button_copies_commands_only(site: Path, page: Page) -> None:
    page.goto((site / "quickstart" / "index.html").as_uri())
    page.evaluate("addEventListener('copy', () => { window.copied = `${getSelection()}` })")

    page.locator(".highlight", has_text="1 failed, 4 passed").locator("button").click()

    copied = page.wait_for_function("window.copied").json_value()
    assert copied == "pytest --upskill-models offline skills/"


def _kinds(site: Path, doc: Path) -> set[tuple[str, str]]:
    """Return tag and class of each element of a page, by which a scheme chooses its colours."""
    return set(
        re.findall(r'<(\w+)(?: [^>]*?class="([^"]*)")?', _built(site, doc).read_text("utf-8"))
    )


def _showing_every_kind(site: Path) -> Iterator[Path]:
    """Yield some of the pages, on which together there is every kind of element."""
    left = set().union(*(_kinds(site, doc) for doc in DOCS))
    while left:
        doc = max(DOCS, key=lambda doc: len(_kinds(site, doc) & left))
        left -= _kinds(site, doc)
        yield doc


_MARK_WHAT_ADDS_NO_KIND = """() => {
    const kinds = new Set(), needed = new Set();
    for (const each of document.querySelectorAll("*")) {
        const kind = `${each.tagName} ${each.getAttribute("class")}`;
        for (let e = each; !kinds.has(kind) && e; e = e.parentElement) needed.add(e);
        kinds.add(kind);
    }
    for (const each of document.querySelectorAll("*"))
        if (!needed.has(each)) each.dataset.again = "";
}"""


def _complain(page: Page, doc: Path, *without: str, **rules: dict[str, bool]) -> None:
    # What passes need not be described, which takes longer than to find out that it does.
    options = {"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"], "rules": rules}
    context = {"exclude": [[each] for each in without]}
    found = Axe().run(page, context, options).response["violations"]
    assert [each for each in found if each["impact"] in {"serious", "critical"}] == [], doc.name


@pytest.mark.needs("chromium")
def test_a_checker_of_accessibility_finds_nothing_serious(site: Path, browser: Browser) -> None:
    page = browser.new_page(viewport=NARROW)
    for doc in DOCS:
        page.goto(_built(site, doc).as_uri())
        # It takes most of the time, and depends on the kinds of elements alone.
        _complain(page, doc, **{"color-contrast": {"enabled": False}})
    page.close()


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)])
def test_every_kind_of_element_has_enough_contrast(
    site: Path, browser: Browser, scheme: Literal["light", "dark"], size: ViewportSize
) -> None:
    page = browser.new_page(color_scheme=scheme, viewport=size)
    for doc in _showing_every_kind(site):
        page.goto(_built(site, doc).as_uri())
        page.evaluate(_MARK_WHAT_ADDS_NO_KIND)
        _complain(page, doc, "[data-again]")
    page.close()
