"""What a worker of pytest-xdist tells its controller at its end."""

from __future__ import annotations

from typing import Any

import pytest


def tell(config: pytest.Config, key: str, value: object) -> bool:
    """Tell the controller; False where this process is no worker, and there is nobody to tell."""
    output = getattr(config, "workeroutput", None)
    if output is None:
        return False
    output[key] = value
    return True


def told(node: Any, key: str) -> Any:
    """Hear what the worker of ``node`` told; None where it told nothing, as when it crashed."""
    return getattr(node, "workeroutput", {}).get(key)
