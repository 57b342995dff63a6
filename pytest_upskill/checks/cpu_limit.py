"""Calls with a limit of CPU time, for functions that may never return, such as pattern searches.

A check calls `call_untrusted`. It uses a timer signal, which only a main thread receives; on other
threads the call runs in a `CallProcess`.

The package ``regex`` has a timeout, but reads ``x{e}`` as fuzzy matching and differs from `re` in
its syntax, so patterns in case files would change their meaning.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TypeVar, TypeVarTuple, cast

if TYPE_CHECKING:
    import subprocess

_SECONDS = 1.0
"""Limit of CPU time of one check."""


class CheckError(Exception):
    """A check that could not be decided; its run counts as missing, not as passed or failed."""


Ts = TypeVarTuple("Ts")
R = TypeVar("R")

# The parent handles Ctrl-C and then closes the pipe.
_CHILD = """
import pickle, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
requests, results = sys.stdin.buffer, sys.stdout.buffer
sys.path, sys.stdout = pickle.load(requests), sys.stderr
while requests.peek(1):
    function, args = pickle.load(requests)
    try:
        outcome = function(*args), None
    except Exception as error:  # raised again by the parent
        outcome = None, error
    pickle.dump(outcome, results)
    results.flush()
"""


class CallProcess:
    """A child process that runs calls on its main thread, where their CPU time can be limited.

    It sets no limit itself: a function that may never return calls `call_untrusted`. The first call
    starts the child. Calls from several threads run one after the other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def call(self, function: Callable[[*Ts], R], *args: *Ts) -> R:
        """Call a function that the child can import.

        Args:
            function: The function.
            args: Its arguments; they, the result and any exception must be picklable.

        Raises:
            RuntimeError: The child ended before it answered; the next call starts a new one.
            Exception: Any exception that the function raises.
        """
        # Imported late, here and below: rarely needed and slow to import.
        import pickle

        request = pickle.dumps((function, args))
        with self._lock:
            child = self._child = self._child or _start_child()
            assert child.stdin
            assert child.stdout
            try:
                child.stdin.write(request)
                child.stdin.flush()
                result, error = pickle.load(child.stdout)  # noqa: S301  what our own child wrote
            except (OSError, EOFError) as reason:
                self._kill()
                raise RuntimeError("the process that checks answers died") from reason
        if error is not None:
            raise error
        return cast(R, result)

    def close(self) -> None:
        """End the child and any call that it is running."""
        if child := self._child:
            child.kill()
        with self._lock:
            self._kill()

    def _kill(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()


def _start_child() -> subprocess.Popen[bytes]:
    import pickle
    import subprocess

    child = subprocess.Popen(  # noqa: S603  our own code
        [sys.executable, "-P", "-c", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdin is not None
    pickle.dump(sys.path, child.stdin)
    return child


def call_untrusted(subject: str, function: Callable[[*Ts], R], *args: *Ts) -> R:
    """Call a function on untrusted input with a limit of one second of CPU time.

    The signal of the virtual timer interrupts even C code such as ``re``, which holds the global
    interpreter lock. Only a main thread can receive it; other threads use that of a `CallProcess`.

    Args:
        subject: Name of the check, for the message.
        function: A function that a child process can import.
        args: Its arguments; they, the result and any exception must be picklable.

    Raises:
        CheckError: The call takes longer.
        Exception: Any exception that the function raises.
    """
    if threading.current_thread() is not threading.main_thread():
        with closing(CallProcess()) as child:
            call: Callable[[], R] = partial(call_untrusted, subject, function, *args)
            return child.call(call)
    handler = signal.signal(signal.SIGVTALRM, _time_out)
    try:
        # Repeatedly: an exception in a finalizer or a garbage collector callback is ignored.
        timer = signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS, 0.1)
        try:
            return function(*args)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, *timer)
    except TimeoutError:
        raise CheckError(f"{subject} took over {_SECONDS:g} s: simplify it") from None
    finally:
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if handler is None else handler)


def _time_out(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise TimeoutError
