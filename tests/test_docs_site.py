from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from tests.pages import CHECKOUT


def test_the_pages_build_strictly_into_a_site(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    assert process.returncode == 0, process.stdout
    assert (tmp_path / "site" / "ci" / "index.html").exists()
    assert (tmp_path / "site" / "workflows" / "replay.yml").exists()


def test_every_page_is_in_the_navigation() -> None:
    nav = yaml.safe_load((CHECKOUT / "mkdocs.yml").read_text("utf-8"))["nav"]

    assert sorted(nav) == sorted(page.name for page in (CHECKOUT / "docs").glob("*.md"))
