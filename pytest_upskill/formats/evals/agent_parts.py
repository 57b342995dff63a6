"""The parts of an evals file's case that only an agent can fulfil: files, scripts, workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_upskill.checks import FileExists, ProcessCheck, WorkspaceFile
from pytest_upskill.checks.files import safe_name
from pytest_upskill.formats.evals.owner import Owner
from pytest_upskill.formats.skill_md.files import Unreadable

_PRODUCED = (
    "expected_files",
    "expected_artifacts",
    "required_artifacts",
    "output_files",
)
_PROCESS: Mapping[str, Literal["read_file", "ran_script"]] = {
    "expected_script": "ran_script",
    "expected_references": "read_file",
}
_WORKSPACES = ("workspace", "fixture", "fixtures")
_TURNS = (1, 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """What a case asks of an agent."""

    checks: tuple[FileExists, ...] = ()
    process: tuple[ProcessCheck, ...] = ()
    workspace: tuple[WorkspaceFile, ...] = ()
    folder: str = ""
    """The folder of the workspace; "" if the case itself has the files."""
    max_turns: int | None = None
    keys: frozenset[str] = frozenset()
    """The keys of the case that these parts are made of."""


def agent_parts(value: Mapping[str, Any], owner: Owner | None) -> AgentParts:
    """Read the parts for an agent; keys whose values are of another kind are left alone.

    Args:
        value: The case.
        owner: The skill that it belongs to, if any.
    """
    keys: set[str] = set()
    checks: list[FileExists] = []
    process: list[ProcessCheck] = []
    for key in (*_PRODUCED, *_PROCESS):
        names = [*_paths(value.get(key))]
        if not names:
            continue
        keys.add(key)
        if key in _PRODUCED:
            checks += [FileExists(file=name) for name in names]
        else:
            process += [ProcessCheck(name=_PROCESS[key], file=name) for name in names]
    files, folder, used = _workspace(value, owner)
    needed = bool(keys or used)
    return AgentParts(
        checks=tuple(checks),
        process=tuple(process),
        workspace=files,
        folder=folder,
        max_turns=_turns(value.get("max_turns")) if needed else None,
        keys=frozenset(keys | used),
    )


def _paths(value: object) -> Iterator[str]:
    """Yield the names of files in a text or a list, nothing if one is no name of a file."""
    listed = value if isinstance(value, list) else [value]
    names = [each.get("path") if isinstance(each, dict) else each for each in listed]
    if all(isinstance(name, str) and safe_name(name.removeprefix("./")) for name in names):
        yield from (str(name).removeprefix("./") for name in names)


def _workspace(
    value: Mapping[str, Any], owner: Owner | None
) -> tuple[tuple[WorkspaceFile, ...], str, set[str]]:
    """Return the files of a workspace, their folder, and the keys that they come from."""
    for key in (*_WORKSPACES, "setup"):
        given = value.get(key)
        if key == "setup" and isinstance(given, dict) and not given.get("commands"):
            given = given.get("files")
        elif key == "setup":
            continue
        if isinstance(given, dict) and given and all(map(_is_file, given.items())):
            files = tuple(WorkspaceFile(name=name, text=text) for name, text in given.items())
            return files, "", {key}
        if isinstance(given, str) and given and owner is not None:
            files = _of_folder(given.removeprefix("./").rstrip("/"), owner)
            if files:
                return files, given, {key}
    return (), "", set()


def _of_folder(name: str, owner: Owner) -> tuple[WorkspaceFile, ...]:
    try:
        found = owner.read_files(name)
    except (Unreadable, OSError):
        return ()
    files = {path.removeprefix(f"{name}/"): text for path, text in found.items()}
    if not all(map(safe_name, files)):
        return ()
    return tuple(WorkspaceFile(name=path, text=text) for path, text in files.items())


def _is_file(entry: tuple[object, object]) -> bool:
    name, text = entry
    return isinstance(name, str) and isinstance(text, str) and safe_name(name)


def _turns(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if _TURNS[0] <= value <= _TURNS[1] else None
