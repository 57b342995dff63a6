"""Sources: how they are read, redacted, cut to a budget, and marked in a question."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from pytest_upskill.answers.resources import WorkError
from pytest_upskill.models.streams import json_or_text
from pytest_upskill.project.digest import digest_of
from pytest_upskill.project.files import read_file
from pytest_upskill.project.messages import safe_line

Kind = Literal["user", "assistant", "call", "error", "result", "text"]

_SECTION = re.compile(r"\n(?=#{1,3} )")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A part of a source."""

    kind: Kind
    text: str


def events_of(text: str) -> tuple[str, list[Event]]:
    """Return what a source is, and its events in order.

    Claude Code's sessions are lines with ``type`` and ``message``, Codex's rollouts are lines of
    ``response_item``; anything else is Markdown, cut at its headings.
    """
    rows = _rows(text)
    if items := [row.get("payload") for row in rows if row.get("type") == "response_item"]:
        return "a Codex rollout", [event for item in items for event in _events(item)]
    said = [row for row in rows if row.get("type") in {"user", "assistant"} and "message" in row]
    if said:
        # But for messages of Claude Code itself to the model, and the work of subagents.
        own = [row for row in said if not row.get("isMeta") and not row.get("isSidechain")]
        return "a Claude Code session", [
            event for row in own for event in _events(row["message"], row["type"])
        ]
    return "text", [Event(kind="text", text=part) for part in _SECTION.split(text) if part.strip()]


def _rows(text: str) -> list[Mapping[str, Any]]:
    """Return the JSON objects of a file with one per line; a torn last line is left out."""
    if not text.lstrip().startswith("{"):
        return []
    return [row for row in map(json_or_text, text.splitlines()) if isinstance(row, dict)]


def _events(item: object, speaker: object = None) -> Iterator[Event]:
    """Yield the events of a message or of a part of one: texts, calls of tools, their results."""
    if not isinstance(item, dict):
        return
    kind, content = str(item.get("type")), item.get("content")
    speaker = speaker or item.get("role")
    if kind == "tool_result":
        yield Event(kind="error" if item.get("is_error") else "result", text=_text(content))
    elif kind.endswith("_output"):
        yield Event(kind="result", text=_text(item.get("output")))
    elif kind == "tool_use":
        called = json.dumps(item.get("input"), ensure_ascii=False)
        yield Event(kind="call", text=f"{item.get('name')} {called}")
    elif kind.endswith("_call"):
        called = item.get("arguments") or item.get("input") or item.get("action") or ""
        yield Event(kind="call", text=called if isinstance(called, str) else json.dumps(called))
    elif isinstance(content, list):
        for part in content:
            yield from _events(part, speaker)
    elif speaker in ("user", "assistant"):
        text = _text(item)
        # Codex itself sends such messages to the model.
        if text and not text.startswith("<environment_context>"):
            yield Event(kind=speaker, text=text)


def _text(content: object) -> str:
    """Return the text of a message's or a tool's content, whatever its form."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return _text(content.get("text") or content.get("content") or content.get("output") or "")
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    return ""


WHOLE = 4000
"""Characters of an event of the most telling kinds that are kept."""

_RANKS: Mapping[Kind, tuple[int, int]] = {
    "user": (0, WHOLE),
    "error": (1, WHOLE),
    "text": (0, 12 * WHOLE),
    "assistant": (2, 1200),
    "call": (2, 1200),
    "result": (3, 300),
}
"""Rank and most characters of each kind."""


def cut_events(events: Sequence[Event], budget: int) -> str:
    """Cut events to a budget of characters, and keep what is most informative.

    1. What the user said, errors and the sections of documents come before the agent's words and
       calls, and these before results.
    2. Of equals, the latest come first: what worked in the end.
    3. A long one loses its middle: `WHOLE` characters of the first kind stay, fewer of the others.
    4. What stays keeps its order.
    """
    remaining, kept = budget, dict[int, str]()
    for at in sorted(range(len(events)), key=lambda at: (_RANKS[events[at].kind][0], -at)):
        event = events[at]
        label = "" if event.kind == "text" else f"[{event.kind}] "
        room = min(_RANKS[event.kind][1], remaining - len(label))
        if room < min(len(event.text), _RANKS["result"][1]):
            continue
        kept[at] = label + _without_middle(event.text, room)
        remaining -= len(kept[at]) + 2
    return "\n\n".join(kept[at] for at in sorted(kept))


def _without_middle(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    mark = f"\n[{len(text) - most} characters left out]\n"
    half = max(0, most - len(mark)) // 2
    return f"{text[:half]}{mark}{text[len(text) - half :]}"


_KINDS: Mapping[str, re.Pattern[str]] = {
    "private key": re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
    ),
    "key": re.compile(
        r"\b(?:sk-ant-[\w-]{20,}|sk-(?:proj-|or-v1-|svcacct-)?[\w-]{20,}|gh[pousr]_\w{30,}"
        r"|github_pat_\w{30,}|glpat-[\w-]{20,}|hf_\w{20,}|A(?:KIA|SIA)[A-Z0-9]{16}"
        r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{35}|npm_\w{36}|pypi-[\w-]{50,}|gsk_\w{20,})"
    ),
    "token": re.compile(
        r"\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}|(?i:\b(?:bearer|basic)\s+)[\w.~+/=-]{16,}"
    ),
    "password": re.compile(
        r"(?i:(?<![a-z])(?:[a-z0-9_-]*(?:password|passwd|passphrase|secret|token|api[_-]?key"
        r"|access[_-]?key|private[_-]?key|client[_-]?secret))(?:\\?[\"'])?\s*[=:]\s*)"
        r"(?:\\?\"[^\"\s\\]{8,}\\?\"|'[^'\s]{8,}'|[^\s'\"\\,;)}\]<>$]{8,})"
    ),
    "credential in a URL": re.compile(r"(?<=://)[^/\s:@\"']+:[^/\s@\"']+@"),
    "e-mail address": re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b"),
}
"""Patterns of what is removed, by kind; tried in this order."""


def redact(text: str) -> tuple[str, Counter[str]]:
    """Return a text without secrets, and how many of each kind were removed."""
    removed = Counter[str]()
    for kind, pattern in _KINDS.items():
        text, times = pattern.subn(f"[{kind} removed]", text)
        if times:
            removed[kind] += times
    return text, removed


BUDGET = 48_000
"""Characters of all sources together that are sent."""

MAX_BYTES = 64 << 20
"""Size of a file that is read: sessions of agents get long."""


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

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.kind}, {self.characters:,} characters"]
        if len(self.text) != self.characters:
            parts.append(f"{len(self.text):,} will be sent")
        parts += [f"{count} {kind} removed" for kind, count in self.removed.items()]
        return "; ".join(parts)


def read_sources(paths: Sequence[Path], *, budget: int = BUDGET) -> list[Source]:
    """Read, redact and cut sources; each gets the same share of the budget.

    Args:
        paths: Files, or folders of skills.
        budget: Characters of all together.

    Raises:
        OSError: One of them cannot be read.
        WorkError: One of them is not text.
    """
    share = budget // max(1, len(paths))
    return [source_of(path.name or str(path), _text_of(path), budget=share) for path in paths]


def source_of(name: str, text: str, *, budget: int = BUDGET) -> Source:
    """Redact and cut a text."""
    kind, events = events_of(text)
    removed, clean = Counter[str](), list[Event]()
    # The events, not the file: JSON escapes quotation marks, which the patterns do not expect.
    for event in events:
        without_secrets, found = redact(event.text)
        clean.append(Event(kind=event.kind, text=without_secrets))
        removed += found
    sent = cut_events(clean, budget)
    return Source(name=name, kind=kind, text=sent, characters=len(text), removed=removed)


def _text_of(path: Path) -> str:
    file = path / "SKILL.md" if path.is_dir() else path
    try:
        text = read_file(file, MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or "\0" in text:
        raise WorkError(f"--from: {file}: holds no UTF-8 text: convert it to Markdown first")
    return text


def prompt(file: str, /, **values: object) -> str:
    """Return a question to the teacher, from a file in ``prompts``."""
    return _prompts().get_template(f"{file}.md").render(values).rstrip()


@cache
def _prompts() -> Environment:
    environment = Environment(  # noqa: S701  a model reads it, not a browser
        loader=PackageLoader("pytest_upskill.teacher", "prompts"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["marked"] = lambda text, mark: marked(mark, text)
    return environment


def marked(name: str, text: str) -> str:
    """Return material between two marks with a digest of it, which it cannot predict."""
    mark = f"{name}-{digest_of(text)}"
    return f"<{mark}>\n{text}\n</{mark}>"


def marked_sources(sources: Iterable[Source]) -> str:
    """Return sources between marks, each under its name."""
    return "\n\n".join(
        f"{safe_line(source.name)} ({source.kind}):\n{marked('source', source.text)}"
        for source in sources
    )
