"""The limit on checks that what they read could keep busy without end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from pytest_upskill.checks.cpu_limit import call_limited
from pytest_upskill.checks.result import CheckError

_SECONDS = 1.0
_Ts = TypeVarTuple("_Ts")
_R = TypeVar("_R")


def limited(subject: str, function: Callable[[*_Ts], _R], *args: *_Ts) -> _R:
    """Call ``function`` on what nobody trusts, within a second of CPU time.

    Args:
        subject: What is being done, for the message.
        function: A function that a child process can import.
        args: Its arguments; these and the result can be pickled.

    Raises:
        CheckError: It takes longer.
    """
    try:
        return call_limited(_SECONDS, function, *args)
    except TimeoutError:
        raise CheckError(f"{subject} took over {_SECONDS:g} s: simplify it") from None
