"""Commands of a shell in a sandbox: tools of an agent, the setup of a case, and checks.

They all see the same folders, programs and variables.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from pytest_upskill.sandbox.confinement import PYTHON_FOLDERS, search_path, tools
from pytest_upskill.sandbox.limits import Limits
from pytest_upskill.sandbox.run import Outcome, Sandbox, Workspace

WORK, HOME, SCRATCH = "tmp/agent-workspace", "tmp/agent-home", "tmp/agent-scratch"
"""The folders that commands may write, below the root of the sandbox's workspace."""

PLACES: Mapping[str, str] = {WORK: "/workspace", HOME: "/home/agent"}
"""Where commands, and programs of agents, see them in bubblewrap: the same on every machine."""

SHELL_LIMITS = Limits(memory_bytes=16 << 30)
"""Limits of one command. They count address space, of which Node alone reserves over 4 GiB."""

# Git ends where it may not look for the system's settings, as at the level landlock.
_ENTER = """
HOME=$1; cd "$2" || exit 125; shift 2
export HOME PYTHONPATH="${TMPDIR%/tmp}/lib" PYTHONDONTWRITEBYTECODE=1 GIT_CONFIG_NOSYSTEM=1
export TMPDIR="$TMPDIR/agent-scratch"
"""


class Shell:
    """A shell in a new workspace of a sandbox.

    Args:
        sandbox: Runs the commands.
        home: The workspace, in which no other shell was made.
        files: The files to write below its root; those with a shebang can be executed.

    Raises:
        OSError: The files cannot be written.
    """

    def __init__(self, sandbox: Sandbox, home: Workspace, files: Mapping[str, bytes]) -> None:
        self.home = home
        self.folder = home.root / WORK
        """The folder in which commands start."""
        self._sandbox = sandbox
        self._pytest = [*link_pytest(home.root)]
        for folder in (WORK, HOME, SCRATCH):
            (home.root / folder).mkdir()
        for name, content in files.items():
            home.write_bytes(name, content)
            if content.startswith(b"#!"):
                (home.root / name).chmod(0o755)

    def run(self, script: str, *arguments: str, limits: Limits = SHELL_LIMITS) -> Outcome:
        """Run a script of the plain shell; in its output, no folder has the name of this run.

        Raises:
            SandboxError: The shell cannot be started.
        """
        found = tools()
        places = PLACES if self._sandbox.level == "bwrap" else {}
        folders = [places.get(name, str(self.home.root / name)) for name in (HOME, WORK)]
        outcome = self._sandbox.run(
            ["/bin/sh", "-c", _ENTER + script, "sh", *folders, *arguments],
            self.home,
            readable=(*PYTHON_FOLDERS, *self._pytest, *found),
            path=search_path(found),
            limits=limits,
            places=PLACES,
        )
        output = outcome.output.replace(WORK, ".").replace(HOME, "~").replace(SCRATCH, "$TMPDIR")
        return replace(outcome, output=output)

    def bash(self, command: str, limits: Limits = SHELL_LIMITS) -> Outcome:
        """Run a command of the user's or of a model in bash, where there is one.

        Raises:
            SandboxError: The shell cannot be started.
        """
        shell = shutil.which("bash", path="/usr/bin:/bin") or "/bin/sh"
        return self.run('exec "$1" -c "$2"', shell, command, limits=limits)


def link_pytest(root: Path) -> Iterator[Path]:
    """Link pytest and its dependencies into ``lib``, without the rest of the environment.

    Yields:
        What has been linked, and must be readable.
    """
    (root / "lib").mkdir()
    # All packages that pytest imports.
    for name in ("_pytest", "pytest", "pluggy", "iniconfig", "packaging", "py", "pygments"):
        if (spec := find_spec(name)) and spec.origin:
            file = Path(spec.origin)
            found = file.parent if file.name == "__init__.py" else file
            (root / "lib" / found.name).symlink_to(found)
            yield found
