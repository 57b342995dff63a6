"""A separate user for each program, where root runs pytest.

The kernel does not limit the number of root's processes, and it knows root in a user namespace too.
So `setpriv` (util-linux) starts the program as a user that nothing else uses. The program keeps one
capability, the one to open files whatever their modes say: a toolchain may lie in root's own
folder, and the level of the sandbox decides what can be opened.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

from pytest_upskill.sandbox.disk_usage import entries_below

_CHOWN, _DAC_OVERRIDE, _FOWNER, _KILL, _SETGID, _SETUID, _SETPCAP = (
    1 << bit for bit in (0, 1, 3, 5, 6, 7, 8)
)
OWN_USER_CAPABILITIES = _DAC_OVERRIDE | _SETGID | _SETUID | _SETPCAP
"""Capabilities, as a set of bits, that the command needs inside the sandbox."""
OWN_USER_CAPABILITY_NAMES = ("CAP_DAC_OVERRIDE", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP")
"""Their names in bubblewrap."""
_NEEDED = OWN_USER_CAPABILITIES | _CHOWN | _FOWNER | _KILL
_ALL_USERS = ["0", "0", "4294967295"]
"""The map of user ids outside of any user namespace."""
_FIRST_USER = 1 << 30
"""The first of the user ids that distributions, containers and networks do not use."""


def can_change_user() -> bool:
    """Return whether this process can start and kill programs as other users."""
    if sys.platform != "linux" or os.getuid() != 0 or shutil.which("setpriv") is None:
        return False
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        effective = int(next(line for line in lines if line.startswith("CapEff:")).split()[1], 16)
        users = Path("/proc/self/uid_map").read_text("ascii").split()
        return users == _ALL_USERS and effective & _NEEDED == _NEEDED
    return False


def own_user(root: Path) -> int:
    """Return the user of all programs in one workspace, so that each can use the others' files.

    Args:
        root: The root of the workspace.
    """
    return _FIRST_USER + zlib.crc32(root.name.encode()) % _FIRST_USER


def own_user_command(root: Path, writable: Iterable[Path]) -> list[str]:
    """Return the command, to put before another, that runs it as the workspace's own user.

    Args:
        root: The root of the workspace.
        writable: The folders that programs may write; the user becomes the owner of all in them.
    """
    user = own_user(root)
    for folder in writable:
        for path in (folder, *(Path(entry.path) for entry in entries_below(str(folder)))):
            with contextlib.suppress(OSError):
                if path.lstat().st_uid != user:
                    os.lchown(path, user, user)
    kept = "-all,+dac_override"
    options = [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
    # Without this bit, `access`, which compilers call, would ignore the kept capability.
    options += ["--securebits=+no_setuid_fixup", f"--inh-caps={kept}", f"--ambient-caps={kept}"]
    return [shutil.which("setpriv") or "setpriv", *options]
