"""Objects that stay until the process ends: nothing for the garbage collector to go through."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def long_lived() -> Iterator[None]:
    """Keep all that is made here, and what was there before, out of later collections.

    An SDK's import makes objects by the hundred thousand, and so does collecting. To go through
    them while they are made, at the end of pytest and at that of Python can take longer than that.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
