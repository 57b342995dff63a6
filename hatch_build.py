"""The page of the package on an index, where a link to a file of the repository needs an address.

The variable UPSKILL_REPOSITORY holds the address, such as https://github.com/OWNER/pytest-upskill.
The release workflow sets it. Without it the package has no links, and must not be published.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)]+)\)")


class PackagePage(MetadataHookInterface):
    """Adds the README, and the links of the package, to its metadata."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what pyproject.toml declares as dynamic."""
        readme = (Path(self.root) / "README.md").read_text("utf-8")
        if repository := os.environ.get("UPSKILL_REPOSITORY"):
            version = f"v{metadata['version']}"
            readme = _with_absolute_links(readme, repository, version)
            metadata["urls"] = {
                "Documentation": f"{repository}/blob/{version}/docs/index.md",
                "Repository": repository,
                "Changelog": f"{repository}/blob/{version}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}


def _with_absolute_links(readme: str, repository: str, version: str) -> str:
    def absolute(link: re.Match[str]) -> str:
        image, text, path = link.groups()
        return f"{image}{text}({repository}/{'raw' if image else 'blob'}/{version}/{path})"

    return _RELATIVE_LINK.sub(absolute, readme)
