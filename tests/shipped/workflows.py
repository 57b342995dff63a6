"""Workflows that the docs show, those of this repository, and their steps."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.forked import forked_commands
from tests.pages import CHECKOUT

ACTION = CHECKOUT / "action.yml"
FOLDER = CHECKOUT / "docs" / "workflows"
WORKFLOWS = [file for file in sorted(FOLDER.glob("*.yml")) if file.name != "gitlab-ci.yml"]
GITHUB = CHECKOUT / ".github"
OWN_WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))


def steps(document: Any) -> Iterator[dict[str, Any]]:
    """List the steps of an action, or of the jobs of a workflow."""
    if "runs" in document:
        yield from document["runs"]["steps"]
    for job in document.get("jobs", {}).values():
        # A job that runs another workflow has none.
        yield from job.get("steps", ())


def shell(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a step of a job is run; the output holds both streams."""
    folders = (forked_commands(), Path(sys.executable).parent, os.environ["PATH"])
    path = os.pathsep.join(map(str, folders))
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTEST_ADDOPTS": "-p no:anyio", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
