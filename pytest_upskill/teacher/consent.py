"""Consent: nothing is sent or changed before somebody has seen it and said yes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pytest_upskill.repository.atomic_write import write_whole
from pytest_upskill.repository.git import is_dirty
from pytest_upskill.teacher.engine import Engine, TeacherError
from pytest_upskill.teacher.sources.read import Source

_SHOWN_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """Who says yes: an option, or somebody at a terminal."""

    yes: bool
    """Whether --yes was given: sources are sent unasked."""
    apply: bool
    """Whether --apply was given: the folder is changed unasked."""
    terminal: TextIO | None
    """Where answers are typed; None without a terminal."""

    def asks(self, question: str) -> bool:
        """Return whether somebody types yes."""
        if self.terminal is None:
            return False
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        return self.terminal.readline().strip().lower() in {"y", "yes"}


def check_sources(
    engine: Engine, sources: Iterable[Source], teacher: str, consent: Consent
) -> None:
    """Show what is sent of the sources, and have it confirmed.

    Raises:
        TeacherError: Nobody has confirmed it.
    """
    sources = list(sources)
    for source in sources:
        engine.say(str(source))
        lines = source.text.splitlines()
        for line in lines[:_SHOWN_LINES]:
            engine.say(f"  | {line}")
        if len(lines) > _SHOWN_LINES:
            engine.say(f"  | … {len(lines) - _SHOWN_LINES} more lines")
    if not sources or consent.yes:
        return
    if not consent.asks(f"Send this to {teacher}?"):
        cure = "" if consent.terminal else ": add --yes to send it without a terminal"
        raise TeacherError(f"the sources were not sent{cure}")


def check_clean(file: Path) -> None:
    """Check that a file can be restored from git.

    Raises:
        TeacherError: It has changes that are not committed.
    """
    if file.exists() and is_dirty(file):
        raise TeacherError(f"{file}: has uncommitted changes: commit them, or leave out --apply")


def replace_file(file: Path, old: bytes, new: bytes) -> None:
    """Replace a file whole, unless somebody has changed it meanwhile.

    Args:
        file: The file.
        old: Its content when the command began.
        new: The new content.

    Raises:
        TeacherError: Its content is another one now, or it cannot be written.
    """
    try:
        if file.read_bytes() != old:
            raise TeacherError(f"{file}: has changed meanwhile: start again")
        write_whole(file, new, mode=file.stat().st_mode & 0o777)
    except OSError as error:
        raise TeacherError(f"{file}: cannot be written: {error.strerror}") from None
