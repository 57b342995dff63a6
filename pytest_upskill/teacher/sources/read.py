"""Reading of sources: documents, traces of agents and skills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pytest_upskill.answers.workplace import WorkError
from pytest_upskill.repository.files import read_file
from pytest_upskill.teacher.sources.cut import cut
from pytest_upskill.teacher.sources.events import Event, events_of
from pytest_upskill.teacher.sources.secrets import redact

BUDGET = 48_000
"""Characters of all sources together that are sent."""

MAX_BYTES = 64 << 20
"""Size of a file that is read: sessions of agents get long."""

_PLURALS: Mapping[str, str] = MappingProxyType(
    {
        "user": "user's turns",
        "assistant": "agent's turns",
        "call": "tool calls",
        "error": "errors",
        "result": "tool results",
        "text": "sections",
    }
)
"""Kinds of events in the plural."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source as it is sent."""

    name: str
    kind: str
    text: str
    characters: int
    """Length of the whole source."""
    removed: Mapping[str, int]
    """Secrets that were removed, by kind."""
    left_out: Mapping[str, int]
    """Events that were left out, by kind."""
    shortened: int
    """Events that lost their middle."""

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.kind}, {self.characters:,} characters"]
        if len(self.text) != self.characters:
            parts.append(f"{len(self.text):,} will be sent")
        parts += [f"{count} {kind} removed" for kind, count in self.removed.items()]
        parts += [f"{_PLURALS[kind]} left out: {count}" for kind, count in self.left_out.items()]
        if self.shortened:
            parts.append(f"{self.shortened} shortened")
        return "; ".join(parts)


def read_sources(paths: Sequence[Path], *, budget: int = BUDGET) -> list[Source]:
    """Read, redact and cut sources; each gets the same share of the budget.

    Args:
        paths: Files, or folders of skills.
        budget: Characters of all together.

    Raises:
        WorkError: One of them cannot be read.
    """
    return [read_source(path, budget=budget // len(paths)) for path in paths]


def read_source(path: Path, *, budget: int = BUDGET) -> Source:
    """Read, redact and cut one source.

    Raises:
        WorkError: It cannot be read, or is not text.
    """
    return source_of(path.name or str(path), _text_of(path), budget=budget)


def source_of(name: str, text: str, *, budget: int = BUDGET) -> Source:
    """Redact and cut a text."""
    kind, events = events_of(text)
    # The events, not the file: JSON escapes quotation marks, which the patterns do not expect.
    clean = [(event.kind, *redact(event.text)) for event in events]
    kept = cut([Event(kind=of, text=redacted) for of, redacted, _ in clean], budget)
    return Source(
        name=name,
        kind=kind,
        text=kept.text,
        characters=len(text),
        removed=sum((each for *_, each in clean), Counter[str]()),
        left_out=kept.left_out,
        shortened=kept.shortened,
    )


def _text_of(path: Path) -> str:
    file = path / "SKILL.md" if path.is_dir() else path
    if path.is_dir() and not file.is_file():
        raise WorkError(f"--from: {path}: a folder without a SKILL.md: name the files themselves")
    try:
        data = read_file(file, MAX_BYTES)
    except OSError as error:
        raise WorkError(f"--from: {file}: cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise WorkError(f"--from: {file}: not UTF-8 text: convert it to Markdown first") from None
    if "\0" in text:
        raise WorkError(f"--from: {file}: not text: convert it to Markdown first")
    if not text.strip():
        raise WorkError(f"--from: {file}: empty: name another source")
    return text
