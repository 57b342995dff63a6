"""Files of an agent's workspace, checks of them, and records of what the agent did."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, Self

from pytest_upskill.checks.result import Check, CheckResult, Key, cut, failed, passed

MAX_FILES = 2000
"""Maximum number of files in a workspace."""

MAX_BYTES = 1 << 20
"""Maximum total size of the files in a workspace."""

_MAX_NAMES = 5
_LONGEST_NAME = 400
_QUOTED_OR_ANSWER = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|\bthe answer\b""")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceFile:
    """A file in a workspace."""

    name: str
    """Path relative to the workspace, with slashes."""
    text: str
    """The content; in base64 if it is not UTF-8 text."""
    binary: bool = False
    """Whether ``text`` is base64."""

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return b64decode(self.text) if self.binary else self.text.encode("utf-8", "replace")

    @classmethod
    def of(cls, name: str, content: bytes) -> WorkspaceFile:
        """Make a file from its bytes."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return cls(name=name, text=b64encode(content).decode(), binary=True)
        return cls(name=name, text=text)


Files = Mapping[str, WorkspaceFile]
"""The files of a workspace by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileExists(Key):
    """A check that the workspace has a file with a name that matches a pattern."""

    also_called = "files_exist output_files expected_files artifacts"

    name: Literal["file_exists"] = "file_exists"
    file: str
    """A relative path, in which ``*`` and ``?`` are wildcards."""

    @classmethod
    def of(cls, value: Any) -> list[Self]:
        """See `Key.of`."""
        return [cls(file=each) for each in value]

    def check_files(self, files: Files) -> CheckResult:
        """Search for the file."""
        found = _matching(self.file, files)
        if found:
            return passed(self.name, f" {self.file}: {_names(found)}")
        return failed(self.name, f" {self.file}: not in the workspace ({_names(files)})")


@dataclass(frozen=True, slots=True, kw_only=True)
class InFile:
    """A check of the text of a file in the workspace."""

    name: Literal["file", "file_contains"] = "file"
    file: str
    """A relative path, in which ``*`` and ``?`` are wildcards; one matching file is enough."""
    check: Check

    def check_files(self, files: Files) -> CheckResult:
        """Check the text of each file that matches.

        Raises:
            CheckError: The check cannot be decided.
        """
        found = _matching(self.file, files)
        if not found:
            return failed(self.name, f" {self.file}: not in the workspace ({_names(files)})")
        results = []
        for name in found:
            results.append(self._check_file(files[name]))
            if results[-1].passed:
                break
        return results[-1]

    def _check_file(self, file: WorkspaceFile) -> CheckResult:
        if file.binary:
            return failed(self.name, f" {file.name}: is not text")
        result = self.check.check(file.text)
        message = _QUOTED_OR_ANSWER.sub(lambda match: match[1] or "the file", result.message)
        return replace(
            result, name=self.name, message=cut(f"{self.name} {file.name}: {message}", 240)
        )


FileCheck = FileExists | InFile
"""A check that is decided from the files that an agent left in its workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCheck:
    """A statement on what the agent did, which is reported but decides nothing.

    Only an agent that has the skill can pass it, so it must never enter a pass rate or a lift.
    """

    name: Literal["triggered", "read_file", "ran_script"]
    file: str = ""
    """The file of the skill; empty for ``triggered``."""


def is_safe_name(name: str) -> bool:
    """Return whether a name is a relative path of printable characters that leads nowhere else."""
    parts = name.split("/")
    return (
        0 < len(name) <= _LONGEST_NAME
        and name.isprintable()
        and "\\" not in name
        and all(part not in {"", ".", ".."} for part in parts)
    )


def _matching(pattern: str, files: Iterable[str]) -> list[str]:
    pattern = pattern.removeprefix("./")
    return sorted(name for name in files if fnmatchcase(name, pattern))


def _names(files: Iterable[str]) -> str:
    names = sorted(files)
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return cut(", ".join(names[:_MAX_NAMES]), 120) + more if names else "no files"
