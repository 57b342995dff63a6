"""The version of an agent's program."""

from __future__ import annotations

import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

_SECONDS = 30


@lru_cache  # A session asks more than once, and it takes a quarter of a second.
def version_of(program: Path) -> str:
    """Return what a program says to ``--version``, "" if it says nothing.

    It runs outside the sandbox, as the user's own program, with an empty home folder.
    """
    with tempfile.TemporaryDirectory(prefix="upskill-version-") as home:
        try:
            process = subprocess.run(  # noqa: S603  the user's own program
                [program, "--version"],
                env={"PATH": "/usr/bin:/bin", "HOME": home, "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
    return process.stdout.decode("utf-8", "replace")
