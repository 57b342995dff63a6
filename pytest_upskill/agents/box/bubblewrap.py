"""The sandbox of an agent's program: bubblewrap, with a socket as the only way out.

Nothing of the host is in it but the system's folders, read-only, the agent's program and the Python
that runs the relay. Paths, environment and user are the same on every machine. There is no limit of
the address space, because JavaScript engines reserve more than there is memory.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_upskill.agents.programs.cli import Cli, Installed, Launch
from pytest_upskill.completion import Request
from pytest_upskill.sandbox.confinement import SYSTEM, system_mounts
from pytest_upskill.sandbox.interpreter import PYTHON, PYTHON_FOLDERS

HOME = "/home/agent"
WORK = "/workspace"
BASE_URL = "http://127.0.0.1:8787"
_PORT = "8787"
_AGENT, _RUN = "/opt/agent", "/run/upskill"
_USER = "1000"
_ETC: Mapping[str, str] = {
    "passwd": f"agent:x:{_USER}:{_USER}::{HOME}:/bin/sh\n",
    "group": f"agent:x:{_USER}:\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_RELAY = Path(__file__).with_name("relay.py")


def prepare_folders(root: Path, cli: Cli, launch: Launch, request: Request) -> Path:
    """Make the folders of a run, and return the path of the proxy's socket.

    Args:
        root: A private folder.
        cli: The adapter of the agent.
        launch: How the run starts.
        request: What the agent gets.

    Raises:
        OSError: The files cannot be written.
    """
    assert request.task is not None
    for folder in ("home", "work", "tmp", "shm", "run", "etc"):
        (root / folder).mkdir(exist_ok=True)
    skills = {
        f"home/{cli.skills}/{skill.folder}/{file.name}": file.content
        for skill in request.task.installed
        for file in skill.files
    }
    files = {
        **{f"etc/{name}": text.encode() for name, text in _ETC.items()},
        **{f"home/{name}": text.encode() for name, text in launch.home.items()},
        **{f"work/{file.name}": file.content for file in request.task.workspace},
        **skills,
        "run/prompt": request.user.encode("utf-8", "replace"),
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if content.startswith(b"#!"):
            path.chmod(0o755)
    return root / "run" / "proxy"


def command(
    root: Path, installed: Installed, launch: Launch, info: int, filters: Sequence[int]
) -> list[str]:
    """Return the command line that runs an agent in the sandbox.

    Args:
        root: The folder that `prepare_folders` has filled.
        installed: The agent's program.
        launch: How it starts.
        info: File descriptor to which bubblewrap writes the process id of the sandbox's init.
        filters: File descriptors of filters of system calls.
    """
    inside = Path(_AGENT, installed.program.relative_to(installed.folder.parent))
    words = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent"]
    words += ["--cap-drop", "ALL", "--uid", _USER, "--gid", _USER, "--hostname", "upskill"]
    words += ["--info-fd", str(info), "--clearenv"]
    words += system_mounts(folder for folder in SYSTEM if not folder.startswith("/etc"))
    words += [word for file in filters for word in ("--seccomp", str(file))]
    words += ["--dev", "/dev", "--ro-bind", str(root / "etc"), "/etc"]
    words += ["--bind", str(root / "tmp"), "/tmp"]  # noqa: S108  in the sandbox
    words += ["--bind", str(root / "home"), HOME, "--bind", str(root / "work"), WORK]
    words += ["--ro-bind", str(root / "run"), _RUN, "--ro-bind", str(_RELAY), f"{_RUN}.py"]
    words += ["--ro-bind", str(installed.folder), f"{_AGENT}/{installed.folder.name}"]
    for folder in PYTHON_FOLDERS:
        if not folder.is_relative_to("/usr"):
            words += ["--ro-bind", str(folder), str(folder)]
    # The rest is in memory, and a program that fills it up would fill up the machine's.
    words += ["--bind", str(root / "shm"), "/dev/shm"]  # noqa: S108  in the sandbox
    words += ["--remount-ro", "/dev", "--remount-ro", "/"]
    path = f"{inside.parent}:/usr/local/bin:/usr/bin:/bin:{PYTHON.parent}"
    environment = {
        "PATH": path,
        "HOME": HOME,
        "USER": "agent",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TZ": "UTC",
        **launch.environment,
    }
    for name, value in environment.items():
        words += ["--setenv", name, value]
    relay = [str(PYTHON), "-I", "-S", f"{_RUN}.py", _PORT, f"{_RUN}/proxy", f"{_RUN}/prompt"]
    return [*words, "--chdir", WORK, "--", *relay, "--", str(inside), *launch.arguments]


def init_process(info: bytes) -> int | None:
    """Return the process id of the sandbox's init, whose end ends all; None if it is unknown."""
    try:
        return int(json.loads(info)["child-pid"])
    except (ValueError, LookupError, TypeError):
        return None
