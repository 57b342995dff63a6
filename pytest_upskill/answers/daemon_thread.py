"""Run blocking work on a daemon thread, so that the process never waits for it at exit."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(function: Callable[[], T]) -> T:
    """Call ``function`` on a daemon thread and wait for what it returns or raises.

    A ``BaseException`` that is no ``Exception`` is raised as a ``RuntimeError`` with its name.

    ``asyncio.to_thread`` would keep the process alive until the call returns: after Ctrl-C during
    the import of an SDK, for seconds.
    """
    future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def call() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(function())
        except Exception as error:  # noqa: BLE001  raised where it is waited for
            future.set_exception(error)
        except BaseException as error:  # noqa: BLE001  such as SystemExit, which would end the loop
            future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))

    threading.Thread(target=call, name="upskill-open", daemon=True).start()
    return await asyncio.wrap_future(future)
