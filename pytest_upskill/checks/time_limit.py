"""The time limit of checks whose input could make them run forever.

A process that can be stopped, and not the timeout of the package ``regex``: that reads ``x{e}`` as
fuzzy matching and takes other syntax than `re`, so case files would change their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from pytest_upskill.checks.cpu_limit import call_limited
from pytest_upskill.checks.result import CheckError

_SECONDS = 1.0
_Ts = TypeVarTuple("_Ts")
_R = TypeVar("_R")


def limited(subject: str, function: Callable[[*_Ts], _R], *args: *_Ts) -> _R:
    """Call a function on untrusted input with a limit of one second of CPU time.

    Args:
        subject: Name of the check, for the message.
        function: A function that a child process can import.
        args: Its arguments; they, the result and any exception must be picklable.

    Raises:
        CheckError: The call takes longer.
        Exception: Any exception that the function raises.
    """
    try:
        return call_limited(_SECONDS, function, *args)
    except TimeoutError:
        raise CheckError(f"{subject} took over {_SECONDS:g} s: simplify it") from None
