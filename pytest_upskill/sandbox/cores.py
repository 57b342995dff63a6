"""The number of usable processors."""

from __future__ import annotations

import os


def cores() -> int:
    """Return the number of processors that this process may use; on macOS, of all processors."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
