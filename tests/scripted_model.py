"""A model that answers as a test wants, run by run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.loopback import Loopback, Received, Reply

Script = Callable[..., tuple[str, ...]]

_REPLIES = {
    "+": Reply(text="right"),
    "-": Reply(text="wrong"),
    "!": Reply(status=400),
    "/": Reply(text="wrong", stop="max_tokens"),
    "%": Reply(text="right", stop="max_tokens"),
}


@pytest.fixture
def script(write_skill: Callable[..., Path], without_sockets: Loopback) -> Script:
    """Write a skill whose cases will be answered as given; return the arguments that run it.

    A case is ``"with without"`` or ``"with without old"``, where each arm is a string of ``+`` for
    a pass, ``-`` for a fail, ``/`` for a fail with a cut answer, ``%`` for a pass with one, and
    ``!`` for no usable reply, all of the same length.
    """

    def script(**cases: str) -> tuple[str, ...]:
        replies = {
            (arm, case): deque(outcomes)
            for case, arms in cases.items()
            for arm, outcomes in zip(("new", "without", "old"), arms.split(), strict=False)
        }

        def answer(received: Received) -> Reply:
            skill = received.system.partition("<skill")[2]
            arm = "without" if not skill else "old" if "OLD" in skill else "new"
            left = replies[arm, received.user]
            reply = _REPLIES[left.popleft()]
            # Runs with one text would count as one.
            if not left or reply.status != 200:
                return reply
            return replace(reply, text=f"{reply.text} ({len(left)} left)")

        without_sockets.answer = answer
        write_skill(
            *({"id": case, "input": case, "expected": {"contains": "right"}} for case in cases),
            name="csv",
        )
        runs = len(next(iter(cases.values())).split()[0])
        models = f"haiku=haiku-1@{without_sockets.openai_url}"
        return (
            "skills",
            f"--upskill-models={models}",
            f"--upskill-runs={runs}",
            "--upskill-cache=off",
        )

    return script
