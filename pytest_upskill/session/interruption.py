"""Ctrl-C that arrives while a thread waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt also where CPython makes another error of it.

    If Ctrl-C arrives while ``Condition.wait`` gives its lock up or takes it back, the lock is
    released without being held, which raises RuntimeError.
    """
    try:
        yield
    except RuntimeError as error:
        cause = error.__context__
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise cause from None
            cause = cause.__context__
        raise
