"""The sandbox of agents' tools, which must hide files and the network."""

from __future__ import annotations

from contextlib import suppress

from pytest_upskill.sandbox.machine import Level
from pytest_upskill.sandbox.run import Sandbox, SandboxError


def agent_sandbox(level: Level) -> Sandbox:
    """Return the sandbox for the tools of agents.

    Args:
        level: The chosen level; ``auto`` for the strongest that works.

    Raises:
        SandboxError: The level hides no files, or does not work on this machine.
    """
    if level in {"limits", "off"}:
        raise SandboxError(
            "agents run commands that a model wrote, and sandbox level "
            f"{level!r} does not hide files from them: use --upskill-sandbox auto"
        )
    with suppress(SandboxError):
        sandbox = Sandbox(level)
        if sandbox.hides_files:
            return sandbox
    raise SandboxError(
        "agents need bubblewrap or Landlock, and neither works here: install bubblewrap and allow "
        "user namespaces, or run in a Linux container; a replay needs neither"
    )
