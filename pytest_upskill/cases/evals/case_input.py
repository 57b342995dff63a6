"""The input of a case in an evals file: its prompt, its context, and its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from pytest_upskill.cases.evals.keys import PROMPT_KEYS
from pytest_upskill.cases.evals.owner import Owner
from pytest_upskill.cases.source.files import MAX_TOTAL_BYTES, Unreadable
from pytest_upskill.cases.source.json import JsonPath
from pytest_upskill.cases.source.problems import shown

_NO_PROMPT = f"no prompt: add {PROMPT_KEYS[0]!r}"


class Prompt(NamedTuple):
    """The prompt of a case; if it has none, either a reason to skip it or a mistake."""

    text: str = ""
    reason: str | None = None
    problem: tuple[JsonPath, str] | None = None


def merge_prompt_object(value: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Merge the keys of a prompt that is an object into its case.

    Returns:
        The keys of the case, and whether its prompt is an object.
    """
    key = next((key for key in PROMPT_KEYS if key in value), None)
    prompt = value[key] if key else None
    if not isinstance(prompt, dict):
        return value, False
    return prompt | {other: part for other, part in value.items() if other != key}, True


def read_prompt(fields: Mapping[str, Any], *, is_needed: bool, may_be_missing: bool) -> Prompt:
    """Read the prompt of a case, with its context.

    Args:
        fields: The case.
        is_needed: Whether the case needs a prompt, because it is neither skipped for another
            reason nor about the choice of a skill.
        may_be_missing: Whether a case that needs a prompt and has none is skipped; if not, that
            is a mistake.
    """
    key = next((key for key in PROMPT_KEYS if fields.get(key) is not None), None)
    prompt = fields.get(key) if key else None
    if is_text(prompt):
        context = fields.get("context")
        return Prompt(f"{context.strip()}\n\n{prompt}" if is_text(context) else prompt)
    if key and isinstance(prompt, list) and prompt:
        return Prompt(reason=f"{key}: a single answer has no further turns")
    if key and (is_needed or prompt != ""):
        return Prompt(problem=((key,), f"must be non-empty text, got {shown(prompt)}"))
    if is_needed and not may_be_missing:
        return Prompt(problem=((), _NO_PROMPT))
    return Prompt(reason=_NO_PROMPT)


def read_input_files(
    fields: Mapping[str, Any], owner: Owner | None
) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the input files, as text by name, and why the case is skipped if it cannot send all.

    Args:
        fields: The case.
        owner: The skill that it belongs to, if any; it may have the files.
    """
    context = fields.get("context")
    parts = context if isinstance(context, dict) else {"": context}
    reasons = [
        f"context: {key or shown(part)} is not sent: write it as text, or as 'files'"
        for key, part in parts.items()
        if part and key != "files" and not (key == "" and isinstance(part, str))
    ]
    files: dict[str, str] = {}
    for given in (parts.get("files"), fields.get("files")):
        files |= _files_in_case(given)
    if owner is not None:
        for name in _file_names(fields.get("files")):
            try:
                files |= owner.read_files(name)
            except Unreadable as error:
                reasons.append(f"files: {error}")
    if sum(len(text.encode()) for text in files.values()) > MAX_TOTAL_BYTES:
        reasons.append(f"files: over {MAX_TOTAL_BYTES >> 10} KiB in total")
    return files, reasons


def is_text(value: object) -> TypeGuard[str]:
    """Return whether a value is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def _file_names(files: object) -> list[str]:
    """Return the files that are given by name only."""
    listed = files if isinstance(files, list) else [files]
    return [name for name in listed if is_text(name)]


def _files_in_case(files: object) -> Mapping[str, str]:
    """Return the texts of the files that are given in the case itself, by name."""
    if isinstance(files, dict):
        return {name: text for name, text in files.items() if isinstance(text, str)}
    texts: dict[str, str] = {}
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict) and isinstance(file.get("content"), str):
            texts[str(file.get("path") or file.get("name") or "file")] = file["content"]
    return texts
