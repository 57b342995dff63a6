"""Consent: nothing is sent or changed until the user has seen it and agreed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pytest_upskill.cells.wording import counted
from pytest_upskill.repository.atomic_write import write_whole
from pytest_upskill.repository.git import is_dirty
from pytest_upskill.repository.git_command import GitError
from pytest_upskill.teacher.sources.read import Source
from pytest_upskill.teacher.work.decision import Drafts
from pytest_upskill.teacher.work.engine import Engine, TeacherError
from pytest_upskill.teacher.work.place import place

_SHOWN_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """How consent is given: by an option, or at a terminal."""

    yes: bool
    """Whether --yes was given: sources are sent unasked."""
    apply: bool
    """Whether --apply was given: the folder is changed unasked."""
    terminal: TextIO | None
    """Where answers are typed; None without a terminal."""

    def asks(self, question: str) -> bool:
        """Ask a question at the terminal, and return whether the answer is yes."""
        if self.terminal is None:
            return False
        _forget_typed(self.terminal)
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        try:
            typed = self.terminal.readline()
        except UnicodeDecodeError:
            typed = "\n"
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            raise
        if not typed.endswith("\n"):
            # Ctrl-D leaves the cursor behind the question.
            sys.stderr.write("\n")
        return typed.strip().lower() in {"y", "yes"}

    def to_write(self, question: str, files: Iterable[Path], say: Callable[[str], None]) -> bool:
        """Return whether to write files: with --apply, or if the answer to the question is yes.

        Args:
            question: What is asked at the terminal.
            files: The files; one with uncommitted changes is not asked about.
            say: Prints why nothing is written.
        """
        if self.apply:
            return True
        try:
            for file in files:
                check_clean(file)
        except TeacherError as error:
            say(f"nothing was changed: {error}; then the same command with --apply writes it")
            return False
        if not self.asks(question):
            say("nothing was changed: the same command with --apply writes it, without requests")
            return False
        return True


def _forget_typed(terminal: TextIO) -> None:
    """Discard what was typed before the question was asked."""
    try:
        import termios  # not on Windows
    except ImportError:
        return
    with suppress(termios.error, OSError):
        termios.tcflush(terminal, termios.TCIFLUSH)


def check_sources(
    engine: Engine, sources: Iterable[Source], teacher: str, consent: Consent, drafts: Drafts
) -> None:
    """Show what will be sent of the sources, and ask for consent; the whole text is in the drafts.

    Raises:
        TeacherError: Nobody has confirmed it.
    """
    sources = list(sources)
    for number, source in enumerate(sources, 1):
        engine.say(str(source))
        file = drafts.write(f"source-{number}.md", source.text)
        lines = source.text.splitlines()
        for line in lines[:_SHOWN_LINES]:
            engine.say(f"  | {line}")
        if len(lines) > _SHOWN_LINES:
            engine.say(f"  | … {counted(len(lines) - _SHOWN_LINES, 'more line')} in {place(file)}")
    if not sources or consent.yes:
        return
    if not consent.asks(f"Send this to {teacher}?"):
        cure = "" if consent.terminal else ": add --yes to send it without a terminal"
        raise TeacherError(f"the sources were not sent{cure}")


def check_clean(file: Path) -> None:
    """Check that a file can be restored from git.

    Raises:
        TeacherError: It has changes that are not committed, or git does not say whether it has.
    """
    try:
        dirty = file.exists() and is_dirty(file.resolve())
    except GitError as error:
        raise TeacherError(f"{file}: {error}") from None
    if dirty:
        raise TeacherError(f"{file}: has uncommitted changes: commit them first")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file with its new content."""

    file: Path
    old: bytes
    """Its content when the command began."""
    new: bytes


def replace_files(changes: Iterable[Change]) -> None:
    """Replace files in order; replace none if one of them was changed in the meantime.

    Raises:
        TeacherError: The content of one is another one now, or it has uncommitted changes, or it
            cannot be written.
    """
    changes = list(changes)
    for change in changes:
        check_clean(change.file)
        if _read(change.file) != change.old:
            raise TeacherError(f"{change.file}: has changed in the meantime: start again")
    for change in changes:
        # Not in the place of a link, which would cut the file that it leads to off.
        target = change.file.resolve()
        try:
            write_whole(target, change.new, like=target)
        except OSError as error:
            raise _unwritable(change.file, error) from None


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise _unwritable(file, error) from None


def _unwritable(file: Path, error: OSError) -> TeacherError:
    return TeacherError(f"{file}: cannot be written: {error.strerror}")
