"""A separate user for each program, where root runs pytest.

The kernel does not limit the number of root's processes, and it knows root in a user namespace too.
So `setpriv` (util-linux) makes the program a user that nobody else is, before it starts. It keeps
one capability, the one to open files whatever their modes say: a toolchain may lie in root's own
folder, and the level of the sandbox decides what can be opened.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import zlib
from pathlib import Path

from pytest_upskill.sandbox.cores import cores
from pytest_upskill.sandbox.workspace import Workspace, entries_below

_CHOWN, _DAC_OVERRIDE, _FOWNER, _KILL, _SETGID, _SETUID, _SETPCAP = (
    1 << bit for bit in (0, 1, 3, 5, 6, 7, 8)
)
BECOMING = _DAC_OVERRIDE | _SETGID | _SETUID | _SETPCAP
"""Capabilities, as a set of bits, that `becoming` needs inside the sandbox."""
BECOMING_NAMES = ("CAP_DAC_OVERRIDE", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP")
"""The same as bubblewrap calls them."""
_NEEDED = BECOMING | _CHOWN | _FOWNER | _KILL
_EVERY_USER = ["0", "0", "4294967295"]
_FIRST = 1 << 30
"""First of the user ids that distributions, containers and networks do not use."""


def can_become() -> bool:
    """Return whether this is the kernel's root, with the capabilities to start and end others."""
    if sys.platform != "linux" or os.getuid() != 0 or shutil.which("setpriv") is None:
        return False
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        mine = int(next(line for line in lines if line.startswith("CapEff:")).split()[1], 16)
        users = Path("/proc/self/uid_map").read_text("ascii").split()
        return users == _EVERY_USER and mine & _NEEDED == _NEEDED
    return False


def becoming(home: Workspace) -> list[str]:
    """Return the command, to put before another, that makes it the workspace's own user.

    What the program may write becomes that user's. Whatever runs in one workspace is one user, and
    can go on with the files of what ran there before.
    """
    user = _FIRST + zlib.crc32(home.root.name.encode()) % _FIRST
    writable = home.root / "tmp"
    for path in (writable, *(Path(entry.path) for entry in entries_below(str(writable)))):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid != user:
                os.lchown(path, user, user)
    keep = "-all,+dac_override"
    who = [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
    setpriv = shutil.which("setpriv") or "setpriv"
    # Without the bit, `access` would look at modes all the same, and compilers ask it.
    who += ["--securebits=+no_setuid_fixup"]
    return [setpriv, *who, f"--inh-caps={keep}", f"--ambient-caps={keep}"]


def limit_of_this_user(processes: int) -> int | str:
    """Return a limit for all threads of the user, because the kernel counts them together.

    Args:
        processes: How many one program may have.
    """
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == os.getuid():
                count += len(os.listdir(process / "task"))  # noqa: PTH208 - counts, needs no paths
    # One program runs per core. Without a count, as on macOS, set no limit: the user could be over
    # it already.
    return count + processes * cores() if count else "unlimited"
