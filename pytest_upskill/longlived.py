"""Objects that stay until the process ends: nothing for the garbage collector to go through."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def long_lived() -> Iterator[None]:
    """Keep all that is made here, and what was there before, out of later collections.

    An SDK's import makes objects by the hundred thousand. To go through them while they are made,
    at the end of pytest and at that of Python takes longer than the import itself.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


class CollectedItems:
    """Lets a run's items be among them."""

    def pytest_collection_finish(self) -> None:
        """Set aside what was collected."""
        gc.freeze()
