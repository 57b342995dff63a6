"""The user's consent: to what is sent to a teacher, and to what is changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from pytest_upskill.answers.resources import WorkError
from pytest_upskill.project.messages import counted, safe_line
from pytest_upskill.teacher.files import Change, Drafts, check_clean, display_path, replace_files
from pytest_upskill.teacher.sources import Source

_SHOWN_LINES = 12

Say = Callable[..., None]
"""Prints lines."""


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
        _discard_typed_input(self.terminal)
        sys.stderr.write(f"{safe_line(question)} ")
        sys.stderr.flush()
        try:
            return self.terminal.readline().strip()
        except UnicodeDecodeError:
            return ""

    def check_sources(self, sources: Sequence[Source], drafts: Drafts, to: str, say: Say) -> None:
        """Show what will be sent of the sources, write it into the drafts, and ask for consent.

        Raises:
            WorkError: The user did not agree.
        """
        for number, source in enumerate(sources, 1):
            say(str(source))
            file = drafts.write(f"source-{number}.md", source.text)
            lines = source.text.splitlines()
            say(*(f"  | {line}" for line in lines[:_SHOWN_LINES]))
            if len(lines) > _SHOWN_LINES:
                more = counted(len(lines) - _SHOWN_LINES, "more line")
                say(f"  | … {more} in {display_path(file)}")
        if sources and not self.yes and not self.ask_yes_no(f"Send this to {to}?"):
            cure = "" if self.terminal else ": add --yes to send them without a terminal"
            raise WorkError(f"the sources were not sent{cure}")

    def apply_changes(self, action: str, changes: Sequence[Change], say: Say) -> bool:
        """Change files if the user agrees: by --apply, or by a typed yes.

        Args:
            action: The question's words before the name of the last file: ``Write this to``.
            changes: The changed files; if one has uncommitted changes, there is no question.
            say: Prints what was written, or why nothing was.

        Returns:
            Whether the files were changed.

        Raises:
            WorkError: The user agreed, but a file has changed meanwhile or cannot be written.
        """
        target = display_path(changes[-1].file)
        if not self.apply:
            try:
                for change in changes:
                    check_clean(change.file)
            except WorkError as error:
                say(f"nothing was changed: {error}; then the same command with --apply writes it")
                return False
            if not self.ask_yes_no(f"{action} {target}?"):
                say("nothing was changed")
                return False
        replace_files(changes)
        say(f"written: {target}")
        return True


def _discard_typed_input(terminal: TextIO) -> None:
    """Discard what was typed before the question was asked."""
    try:
        import termios  # not on Windows
    except ImportError:
        return
    with suppress(termios.error, OSError):
        termios.tcflush(terminal, termios.TCIFLUSH)
