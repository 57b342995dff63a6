"""The docs build as a site, and every page is in its navigation."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.pages import CHECKOUT, fences

DOCS = sorted((CHECKOUT / "docs").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The docs as they are published."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copy(CHECKOUT / "mkdocs.yml", folder)
    shutil.copytree(CHECKOUT / "docs", folder / "docs")
    process = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout
    return folder / "site"


# In one test, as the pages are built together: several workers would build them several times.
def test_every_page_shows_every_block_of_code_under_its_title(site: Path) -> None:
    for page in DOCS:
        file = "index.html" if page.stem == "index" else f"{page.stem}/index.html"
        html = (site / file).read_text("utf-8")
        written = fences(page)

        assert not re.search("<p>[^<]*```", html), page.name
        assert html.count("<pre>") == len(written), page.name
        titles = re.findall(r'<span class="filename">([^<]*)</span>', html)
        assert titles == [fence.title for fence in written if fence.title is not None], page.name


def test_the_site_has_the_workflows_that_pages_link_to(site: Path) -> None:
    assert (site / "workflows" / "replay.yml").exists()


def test_every_page_is_in_the_navigation() -> None:
    nav = yaml.safe_load((CHECKOUT / "mkdocs.yml").read_text("utf-8"))["nav"]

    named = [page for group in nav for pages in group.values() for page in pages]
    assert sorted(named) == [page.name for page in DOCS]
