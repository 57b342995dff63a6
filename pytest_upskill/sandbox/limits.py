"""The levels of the sandbox, and the resource limits of a program in it.

The kernel holds those that `limit_command` sets; `Sandbox.run` watches time, output and folder.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Level = Literal["auto", "bwrap", "landlock", "limits", "off"]
"""Values of ``--upskill-sandbox``; ``auto`` is the strongest level that works here."""

# Limits that the system does not support are skipped. The limit of processes is `-u` in bash and
# `-p` in dash.
_WITH_LIMITS = """
{ ulimit -c 0; ulimit -t "$1"; ulimit -v "$2"; ulimit -f "$3"; ulimit -n "$4"
  ulimit -u "$5" || ulimit -p "$5"; } 2>/dev/null
shift 5
exec "$@"
"""


def cores() -> int:
    """Return the number of processors that this process may use; on macOS, of all processors."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of one program."""

    wall_s: float = 60.0
    """Wall time in seconds."""
    cpu_s: int = 60
    """CPU time of each process in seconds."""
    memory_bytes: int = 4 << 30
    """Address space of each process."""
    file_bytes: int = 64 << 20
    """Size of each file."""
    folder_bytes: int = 1 << 30
    """Total size of the files in ``tmp``, which is measured at intervals."""
    files: int = 20_000
    """Number of files and folders in ``tmp``, which is measured at intervals."""
    output_bytes: int = 256 << 10
    """Size of stdout and stderr together."""
    open_files: int = 256
    """Open files of each process."""
    processes: int = 128
    """Processes and threads."""


def limit_command(limits: Limits, *, is_counted_alone: bool) -> list[str]:
    """Return the command, to put before another, that limits the resources of its processes.

    Args:
        limits: The limits.
        is_counted_alone: Whether the kernel counts the program's processes apart from the user's.
    """
    values = (
        limits.cpu_s,
        limits.memory_bytes >> 10,
        limits.file_bytes >> 9,
        limits.open_files,
        limits.processes if is_counted_alone else _user_process_limit(limits.processes),
    )
    return ["/bin/sh", "-c", _WITH_LIMITS, "sh", *map(str, values)]


def _user_process_limit(processes: int) -> int | str:
    """Return the limit for all threads of this user, which the kernel counts together.

    Args:
        processes: The limit of one program.
    """
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == os.getuid():
                count += len(os.listdir(process / "task"))  # noqa: PTH208 - counts, needs no paths
    # One program runs per core. Without a count, as on macOS, set no limit: the user could be over
    # it already.
    return count + processes * cores() if count else "unlimited"
