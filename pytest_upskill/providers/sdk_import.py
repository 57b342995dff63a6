"""Imported modules stay until the process ends: the garbage collector need not visit them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def long_lived() -> Iterator[None]:
    """Import without garbage collections, and leave the result out of later ones.

    For our own imports while pytest is being configured: without this a run from a warm cache takes
    a fifth more CPU. Later it would also set aside the objects of other people's tests.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
