"""How much this machine does at a time."""

from __future__ import annotations

import os


def cores() -> int:
    """Count the processors that this process may use; macOS tells only how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
