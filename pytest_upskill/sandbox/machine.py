"""Levels of the sandbox, processors of this machine, and the Python that runs this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal, get_args

Level = Literal["auto", "bwrap", "landlock", "limits", "off"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""Values of ``--upskill-sandbox``; ``auto`` is the strongest level that works here."""


def cores() -> int:
    """Return the number of processors that this process may use; on macOS, of all processors."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


PYTHON = Path(sys.executable).resolve()
"""Not the link in a virtual environment, whose folder a sandbox may not show."""

PYTHON_FOLDERS = tuple(
    dict.fromkeys(Path(prefix).resolve() for prefix in (sys.base_prefix, sys.base_exec_prefix))
)
"""The folders that it needs to read."""
