"""The files of a command: drafts, and changes that the user agrees to and that keep the rest."""

import json
import re
import shutil
import sys
import termios
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.source.case_ids import case_ids
from pytest_upskill.cases.source.document import Document, JsonPath
from pytest_upskill.cases.source.formats import read_json
from pytest_upskill.project.digest import digest_of
from pytest_upskill.project.files import MAX_TEXT_BYTES, ignore_in_git, read_file, write_file
from pytest_upskill.project.git import GitError, is_dirty
from pytest_upskill.project.messages import safe_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file with its new content."""

    file: Path
    old: bytes | None
    """Its content when the command began; None if there was no such file."""
    new: bytes


def read_content(file: Path) -> bytes | None:
    """Return what a file contains, None if there is no such file."""
    try:
        return read_file(file, MAX_TEXT_BYTES)
    except FileNotFoundError:
        return None


def check_clean(file: Path) -> None:
    """Check that a file can be restored from git.

    Raises:
        WorkError: It has changes that are not committed, or git does not say whether it has.
    """
    try:
        dirty = file.exists() and is_dirty(file.resolve())
    except GitError as error:
        raise WorkError(f"{file}: {error}") from None
    if dirty:
        raise WorkError(f"{file}: has uncommitted changes: commit them first")


def replace_files(changes: Iterable[Change]) -> None:
    """Replace files in order; replace none if one of them was changed in the meantime.

    Raises:
        WorkError: A file has changed since the command began, or has uncommitted changes.
    """
    changes = list(changes)
    for change in changes:
        if read_content(change.file) != change.old:
            raise WorkError(f"{change.file}: has changed in the meantime: start again")
        check_clean(change.file)
    for change in changes:
        # A link stays a link: its target is replaced.
        target = change.file.resolve()
        write_file(target, change.new, mode=0o666, like=target if target.exists() else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """How the user consents: by an option, or at a terminal."""

    yes: bool
    """Whether --yes was given: sources are sent without a question."""
    apply: bool
    """Whether --apply was given: the folder is changed without a question."""
    terminal: TextIO | None
    """Where the user types; None without a terminal."""

    def ask_yes_no(self, question: str) -> bool:
        """Ask a question at the terminal, and return whether the answer is yes."""
        return self.ask_text(f"{question} [y/N]").lower() in {"y", "yes"}

    def ask_text(self, question: str) -> str:
        """Ask a question at the terminal, and return the answer; "" without a terminal."""
        if self.terminal is None:
            return ""
        with suppress(termios.error, OSError):
            # What was typed before the question is no answer to it.
            termios.tcflush(self.terminal, termios.TCIFLUSH)
        sys.stderr.write(f"{safe_line(question)} ")
        sys.stderr.flush()
        try:
            return self.terminal.readline().strip()
        except UnicodeDecodeError:
            return ""


def save_copy(source: Path, folder: Path, changes: Sequence[Change] = ()) -> str:
    """Write a changed copy of a skill's folder in one step, and return where it is, for a message.

    Args:
        source: The folder to copy.
        folder: The new folder.
        changes: Files of the source that are different in the copy.

    Raises:
        OSError: The folder cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=folder.parent) as parent:
        new = Path(parent, folder.name)
        shutil.copytree(source, new, symlinks=True)
        for change in changes:
            write_file(new / change.file.relative_to(source), change.new, mode=0o666)
        new.rename(folder)
    return f"Saved to {folder if folder.is_absolute() else f'./{folder}'}"


def encoded_like(old: bytes, text: str) -> bytes:
    """Return a text as bytes, with the line ends of the old file."""
    return text.replace("\n", "\r\n" if b"\r\n" in old else "\n").encode()


def with_cases(content: bytes | None, entries: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the content of a case file with further cases at its end.

    Args:
        content: The file as it is, valid for the reader; None if there is none.
        entries: The cases to add.
    """
    if content is None:
        text = json.dumps({"cases": list(entries)}, indent=2, ensure_ascii=False)
        return f"{text}\n".encode()
    text, document, key = _parse(content)
    _, end = json.JSONDecoder().raw_decode(text, document.offsets[key].value)
    # Everything up to the last case, then the blanks that indent the closing bracket.
    head = text[: end - 1].rstrip()
    blank = text[len(head) : end - 1]
    indent = "    " if key else "  "
    written = (json.dumps(entry, indent=2, ensure_ascii=False) for entry in entries)
    added = ",".join(f"\n{textwrap.indent(entry, indent)}" for entry in written)
    comma = "" if head.endswith("[") else ","
    rest = f"{blank or chr(10)}{text[end - 1 :]}"
    return f"{head}{comma}".encode() + encoded_like(content, added) + rest.encode()


def with_train_marks(content: bytes, train: Collection[str]) -> bytes:
    """Return a ``skill_meta.json`` in which train cases begin with ``"train": true``.

    Args:
        content: Its content.
        train: Ids of the train cases.
    """
    text, document, key = _parse(content)
    entries = document.value[key[0]] if key else document.value
    ids = case_ids([(each.get("id") or "", each.get("input", ""), each) for each in entries])
    for index, case in reversed([*enumerate(ids)]):
        if case in train and "train" not in entries[index]:
            at = document.offsets[(*key, index)].value + 1
            rest = text[at:].lstrip()
            blank = text[at:].removesuffix(rest)
            text = f'{text[:at]}{blank}"train": true,{blank or " "}{rest}'
    return text.encode()


def _parse(content: bytes) -> tuple[str, Document, JsonPath]:
    """Return the text of a case file, what it holds, and the path of its cases."""
    text = content.decode("utf-8-sig")
    document = read_json(text)
    if isinstance(document.value, list):
        return text, document, ()
    return text, document, ("cases" if "cases" in document.value else "tests",)


COMMENTS = "comments.md"
"""The file in a folder of drafts in which an author comments on answers."""

_HEADING = re.compile(r"^## ", re.MULTILINE)
_UNSAFE = re.compile(r"[^\w-]+")
_LONGEST_NAME = 64


class Drafts:
    """The folder of one command on one skill; repeating the command uses the same folder.

    Args:
        parent: ``.upskill/drafts`` of the project.
        name: The skill's name; "" if it has none yet.
        identity: The arguments and texts that must be equal for it to be the same command.
    """

    def __init__(self, parent: Path, name: str, *identity: str) -> None:
        digest = digest_of(json.dumps(identity))[:8]
        # The name comes from a SKILL.md, and must not lead out of the parent folder.
        safe = _UNSAFE.sub("-", name)[:_LONGEST_NAME]
        self.folder = parent / f"{safe or 'generated'}-{digest}"
        self._parent = parent

    def write(self, name: str, text: str) -> Path:
        """Write a file of the folder, and return its path.

        Raises:
            OSError: It cannot be written.
        """
        ignore_in_git(self._parent)
        file = self.folder / name
        write_file(file, text.encode("utf-8", "replace"))
        return file

    def read(self, name: str) -> str:
        """Return the text of a file of the folder, "" if there is none."""
        return _text_of(self.folder / name)

    def comments(self, skill: str) -> str:
        """Return what an author has written about the versions of a skill, "" if nothing."""
        written = []
        for text in map(_text_of, sorted(self._parent.glob(f"*/{COMMENTS}"))):
            if not text.startswith(f"# Comments on {skill}\n"):
                continue
            for heading, *lines in (part.split("\n") for part in _HEADING.split(text)[1:]):
                comment = "\n".join(line for line in lines if not line.startswith(">")).strip()
                written += [f"{heading}\n{comment}"] if comment else []
        return "\n\n".join(written)


def _text_of(file: Path) -> str:
    return (read_content(file) or b"").decode("utf-8", "replace")
