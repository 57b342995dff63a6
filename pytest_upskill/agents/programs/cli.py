"""What adapters of agents' command-line programs have in common: find, start and read one."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pytest_upskill.models import Request
from pytest_upskill.models.streams import AgentFormat

_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")
_VERSION_TIMEOUT_S = 30
_MACHINES = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}
"""Names of machines in npm's packages."""


class NoAgentError(Exception):
    """An agent that cannot run here; the message says in one line what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A program that is installed on this machine."""

    program: Path
    """The executable, with all links resolved."""
    folder: Path
    """The folder that the program needs to read; the executable itself if it needs none."""
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a run."""

    arguments: tuple[str, ...]
    """Arguments of the program; the prompt is its standard input."""
    environment: Mapping[str, str]
    home: Mapping[str, str] = field(default_factory=dict)
    """Files below the home folder: name to text."""


class Cli(ABC):
    """The adapter of one program: how it is found and started, and what its calls mean."""

    name: ClassVar[str]
    """The prefix of models that use the program."""
    tested_version: ClassVar[str]
    """The version that the adapter was written for."""
    wire: ClassVar[AgentFormat]
    skills_folder: ClassVar[str]
    """The folder, below the home folder, where the program looks for skills."""
    skill_tool: ClassVar[tuple[str, str]] = ("", "")
    """Its tool that loads a skill, and the argument with the name; "" if the model reads files."""
    command: ClassVar[str]
    """The name of the program on PATH."""
    package: ClassVar[str]
    """Its npm package, whose command wraps an executable in another package for each machine."""
    folder: ClassVar[str]
    """Glob pattern of the folder that the executable needs, in the package of this machine."""
    executable: ClassVar[str] = ""
    """The executable in that folder; "" if the pattern matches the executable itself."""

    def find(self) -> Installed:
        """Find the program.

        Raises:
            NoAgentError: It is not installed; the message says how to install it.
        """
        missing = (
            f"{self.name} needs the program {self.command!r} on PATH: npm install -g {self.package}"
        )
        command = shutil.which(self.command)
        if command is None:
            raise NoAgentError(missing)
        wrapper = Path(os.path.realpath(command))
        folder = next(self._native_folders(wrapper.parent.parent), None)
        program = wrapper if folder is None else (folder / self.executable).resolve()
        version = _VERSION.search(_version_output(program))
        if version is None:
            raise NoAgentError(f"{missing}; {command} does not print its version")
        return Installed(program=program, folder=folder or wrapper, version=version[0])

    def _native_folders(self, package: Path) -> Iterator[Path]:
        """Yield the folders of executables for this machine, next to the npm package or in it."""
        scope, _, name = self.package.partition("/")
        name += f"-linux-{_MACHINES.get(platform.machine(), '')}"
        for native in (package.parent / name, package / "node_modules" / scope / name):
            for folder in sorted(native.glob(self.folder)):
                if (folder / self.executable).is_file():
                    yield folder.resolve()

    @abstractmethod
    def launch(self, request: Request, base_url: str) -> Launch:
        """Return how to start a run.

        Args:
            request: The request of the run.
            base_url: The address of the proxy in the sandbox, without a path.
        """

    @abstractmethod
    def self_test_calls(self, skill: str) -> list[Mapping[str, Any]]:
        """Return calls (``name`` and ``input``) that load the skill, then write ``done.txt``.

        The scripted model of the self-test makes them.
        """


@lru_cache  # A session asks more than once, and it takes a quarter of a second.
def _version_output(program: Path) -> str:
    """Return what a program prints for ``--version``, "" if it fails.

    It runs outside the sandbox, because the user installed it, with an empty home folder.
    """
    with tempfile.TemporaryDirectory(prefix="upskill-version-") as home:
        try:
            process = subprocess.run(  # noqa: S603  the user's own program
                [program, "--version"],
                env={"PATH": "/usr/bin:/bin", "HOME": home, "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_VERSION_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
    return process.stdout.decode("utf-8", "replace")
