"""Values that a pytest-xdist worker sends to the controller when it ends."""

from __future__ import annotations

from typing import Any

import pytest


def send_to_controller(config: pytest.Config, key: str, value: object) -> bool:
    """Send a value to the controller under ``key``; return False if this is not a worker."""
    output = getattr(config, "workeroutput", None)
    if output is None:
        return False
    output[key] = value
    return True


def received_from(node: Any, key: str) -> Any:
    """Return what the worker of ``node`` sent under ``key``; None if nothing, as after a crash."""
    return getattr(node, "workeroutput", {}).get(key)
