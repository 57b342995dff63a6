"""The parts of an evals file's case that only an agent can fulfil: files, scripts, workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_upskill.cases.evals.keys import AGENT_REASONS, OUTPUT_FILE_KEYS, WORKSPACE_KEYS
from pytest_upskill.cases.evals.owner import Owner
from pytest_upskill.cases.source.files import Unreadable
from pytest_upskill.checks import FileExists, ProcessCheck, WorkspaceFile
from pytest_upskill.checks.files import is_safe_name

_PROCESS: Mapping[str, Literal["read_file", "ran_script"]] = {
    "expected_script": "ran_script",
    "expected_references": "read_file",
}
_TURNS = range(1, 201)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """What a case asks of an agent."""

    checks: tuple[FileExists, ...]
    process: tuple[ProcessCheck, ...]
    workspace: tuple[WorkspaceFile, ...]
    folder: str
    """The folder of the workspace; "" if the case itself has the files."""
    max_turns: int | None
    reasons: tuple[str, ...]
    """Why the case cannot run, for each key that needs an agent and has a value of another kind."""


def agent_parts(value: Mapping[str, Any], owner: Owner | None) -> AgentParts:
    """Read the parts for an agent; keys whose values are of another kind are left alone.

    Args:
        value: The case.
        owner: The skill that it belongs to, if any.
    """
    checks = [
        (key, FileExists(file=file)) for key in OUTPUT_FILE_KEYS for file in _paths(value.get(key))
    ]
    process = [
        (key, ProcessCheck(name=name, file=file))
        for key, name in _PROCESS.items()
        for file in _paths(value.get(key))
    ]
    files, folder, key_of_files = _workspace(value, owner)
    used = {key for key, _ in (*checks, *process)} | ({key_of_files} if files else set())
    turns = value.get("max_turns")
    return AgentParts(
        checks=tuple(check for _, check in checks),
        process=tuple(check for _, check in process),
        workspace=files,
        folder=folder,
        max_turns=turns if used and type(turns) is int and turns in _TURNS else None,
        reasons=tuple(
            AGENT_REASONS[key]
            for key, part in value.items()
            if part and key in AGENT_REASONS and key not in used
        ),
    )


def _paths(value: object) -> Iterator[str]:
    """Yield the names of files in a text or a list, nothing if one is no name of a file."""
    listed = value if isinstance(value, list) else [value]
    names = [each.get("path") if isinstance(each, dict) else each for each in listed]
    if all(isinstance(name, str) and is_safe_name(name.removeprefix("./")) for name in names):
        yield from (str(name).removeprefix("./") for name in names)


def _workspace(
    value: Mapping[str, Any], owner: Owner | None
) -> tuple[tuple[WorkspaceFile, ...], str, str]:
    """Return the files of a workspace, their folder, and the key that they come from."""
    for key, given in _workspaces(value):
        folder = given if isinstance(given, str) else ""
        texts = _read_folder(folder, owner) if folder and owner else given
        if (
            isinstance(texts, dict)
            and texts
            and all(isinstance(text, str) and is_safe_name(name) for name, text in texts.items())
        ):
            files = tuple(WorkspaceFile(name=name, text=text) for name, text in texts.items())
            return files, folder, key
    return (), "", ""


def _workspaces(value: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    yield from ((key, value.get(key)) for key in WORKSPACE_KEYS)
    setup = value.get("setup")
    if isinstance(setup, dict) and not setup.get("commands"):
        yield "setup", setup.get("files")


def _read_folder(given: str, owner: Owner) -> Mapping[str, str]:
    """Return the files of a folder by their names in it, none if they cannot be read."""
    name = given.removeprefix("./").rstrip("/")
    try:
        found = owner.read_files(name)
    except (Unreadable, OSError):
        return {}
    return {path.removeprefix(f"{name}/"): text for path, text in found.items()}
