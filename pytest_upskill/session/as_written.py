"""Importing modules as they are written: pytest rewrites the asserts of a plugin otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_written(hook: object) -> Iterator[None]:
    """Keep an import hook away from what is imported here.

    Pytest's holds each module of a plugin against its source, for asserts that say more where they
    fail. Ours never show, and a hundred modules took it a twelfth of a run from a warm cache.

    Args:
        hook: A finder of ``sys.meta_path``; any other object is nothing to keep away.
    """
    place = next((place for place, finder in enumerate(sys.meta_path) if finder is hook), None)
    if place is None:
        yield
        return
    finder = sys.meta_path.pop(place)
    try:
        yield
    finally:
        sys.meta_path.insert(place, finder)
