"""The sandbox of an agent's program: bubblewrap, with a socket as the only way out.

It shows nothing of the host except the system's folders, read-only, the agent's program and the
Python that runs the relay. Paths, environment and user are the same on every machine. The address
space is not limited, because JavaScript engines reserve more than there is memory.
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
        root: The new folder of the run.
        cli: The adapter of the agent.
        launch: How to start the program.
        request: What the agent gets.

    Raises:
        OSError: The files cannot be written.
    """
    assert request.task is not None
    for folder in ("home", "work", "tmp", "shm", "run", "etc"):
        (root / folder).mkdir(exist_ok=True)
    skills = {
        f"home/{cli.skills_folder}/{skill.folder}/{file.name}": file.content
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


def bwrap_command(
    root: Path, installed: Installed, launch: Launch, info_file: int, filter_files: Sequence[int]
) -> list[str]:
    """Return the command that runs an agent in the sandbox.

    Args:
        root: The folder that `prepare_folders` has filled.
        installed: The agent's program.
        launch: How to start it.
        info_file: File descriptor to which bubblewrap writes the process id of the sandbox's init.
        filter_files: File descriptors of filters of system calls.
    """
    program = Path(_AGENT, installed.program.relative_to(installed.folder.parent))
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent"]
    command += ["--cap-drop", "ALL", "--uid", _USER, "--gid", _USER, "--hostname", "upskill"]
    command += ["--info-fd", str(info_file), "--clearenv"]
    command += system_mounts(folder for folder in SYSTEM if not folder.startswith("/etc"))
    command += [word for file in filter_files for word in ("--seccomp", str(file))]
    command += ["--dev", "/dev", "--ro-bind", str(root / "etc"), "/etc"]
    command += ["--bind", str(root / "tmp"), "/tmp"]  # noqa: S108  in the sandbox
    command += ["--bind", str(root / "home"), HOME, "--bind", str(root / "work"), WORK]
    command += ["--ro-bind", str(root / "run"), _RUN, "--ro-bind", str(_RELAY), f"{_RUN}.py"]
    command += ["--ro-bind", str(installed.folder), f"{_AGENT}/{installed.folder.name}"]
    for folder in PYTHON_FOLDERS:
        if not folder.is_relative_to("/usr"):
            command += ["--ro-bind", str(folder), str(folder)]
    # All other folders are in memory, and a program that fills them up would fill up the machine's.
    command += ["--bind", str(root / "shm"), "/dev/shm"]  # noqa: S108  in the sandbox
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    path = f"{program.parent}:/usr/local/bin:/usr/bin:/bin:{PYTHON.parent}"
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
        command += ["--setenv", name, value]
    relay = [str(PYTHON), "-I", "-S", f"{_RUN}.py", _PORT, f"{_RUN}/proxy", f"{_RUN}/prompt"]
    return [*command, "--chdir", WORK, "--", *relay, "--", str(program), *launch.arguments]


def init_process(info: bytes) -> int | None:
    """Return the process id of the sandbox's init, which ends all others; None if it is unknown.

    Args:
        info: What bubblewrap has written to its ``info_file``.
    """
    try:
        return int(json.loads(info)["child-pid"])
    except (ValueError, LookupError, TypeError):
        return None
