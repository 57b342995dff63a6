"""What adapters of agents' command-line programs have in common: find, start and read one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pytest_upskill.models import Request

_VERSION = re.compile(r"\d+\.\d+\.\d+(?:\S*\w)?")
_VERSION_TIMEOUT_S = 30


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
    node: Path | None = None
    """The Node that runs the program; None for an executable."""


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
    skills_folder: ClassVar[str] = ".agents/skills"
    """The folder, below the home folder, where the program looks for skills."""
    skill_tool: ClassVar[tuple[str, str]] = ("", "")
    """Its tool that loads a skill, and the argument with the name; "" if the model reads files."""
    shell: ClassVar[tuple[str, str]] = ("bash", "command")
    """Its tool that runs a command, and the argument with the command."""
    left_out: ClassVar[tuple[str, ...]] = ()
    """The fields and tools of its requests that are not passed on, in ``tested_version``."""
    command: ClassVar[str]
    """The name of the program on PATH."""
    package: ClassVar[str]
    """Its npm package."""

    def find(self) -> Installed:
        """Find the program.

        Raises:
            NoAgentError: It is not installed; the message says how to install it.
        """
        missing = (
            f"{self.name} needs the program {self.command!r} on PATH: npm install -g {self.package}"
        )
        command = shutil.which(self.command)
        if not command:
            raise NoAgentError(missing)
        program = Path(os.path.realpath(command))
        if _is_of_node(program):
            return self._script(program, missing)
        version = _VERSION.search(_version_output(program))
        if version is None:
            raise NoAgentError(f"{missing}; {command} does not print its version")
        return Installed(program=program, folder=program, version=version[0])

    def _script(self, program: Path, missing: str) -> Installed:
        """Return a script of Node with all packages that it may import.

        Raises:
            NoAgentError: There is no Node, or it is not that of the package.
        """
        node = shutil.which("node")
        folder = next((each for each in program.parents if each.name == "node_modules"), None)
        if node is None or folder is None:
            raise NoAgentError(f"{missing}; {program} needs node on PATH, and its npm package")
        package = json.loads((folder / self.package / "package.json").read_text("utf-8"))
        real_node = Path(os.path.realpath(node))
        return Installed(program=program, folder=folder, version=package["version"], node=real_node)

    @abstractmethod
    def launch(self, request: Request, base_url: str) -> Launch:
        """Return how to start a run.

        Args:
            request: The request of the run.
            base_url: The address of the proxy in the sandbox, without a path.
        """

    def self_test_calls(self, skill: str) -> list[Mapping[str, Any]]:
        """Return calls (``name`` and ``input``) that load the skill, then write ``done.txt``.

        The scripted model of the self-test makes them.
        """
        tool, argument = self.skill_tool
        read = self.shell_call(f"cat ~/{self.skills_folder}/{skill}/SKILL.md")
        load = {"name": tool, "input": {argument: skill}} if tool else read
        return [load, self.shell_call("printf done > done.txt")]

    def shell_call(self, command: str) -> Mapping[str, Any]:
        """Return a call that runs a command."""
        tool, argument = self.shell
        # Some programs demand a description, and the others ignore it.
        return {"name": tool, "input": {argument: command, "description": "as asked"}}


def _is_of_node(program: Path) -> bool:
    with program.open("rb") as file:
        return b"node" in file.readline(100) and program.suffix in {".js", ".mjs", ".cjs"}


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
