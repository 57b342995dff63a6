"""Edits of a ``SKILL.md``: the request for them, and the reasons to refuse them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from pytest_upskill.answers.prices import BYTES_PER_TOKEN
from pytest_upskill.cases.skill import Case
from pytest_upskill.cases.skill_text import read_skill_text
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.teacher.additions import copies_words, refused_parts
from pytest_upskill.teacher.reply import Refused, read_json_reply, validate_as
from pytest_upskill.teacher.sources import MATERIAL, marked

_LONGEST_ANSWER = 1500
_REFINE = """\
You improve the SKILL.md of an agent skill: a text that a smaller model reads before it answers. \
Below are the SKILL.md and questions that the smaller model got wrong with it, with its answers. \
You are not told how answers are graded. Find out what knowledge or guidance the text lacks, and \
mend the cause in general: other questions of the same kind, which you do not see, decide whether \
your version is kept.

Reply with one fenced JSON block:

```json
{"edits": [{"find": "text that occurs exactly once below the front matter", "replace": "new text"}]}
```

Edits are made in order. To add text, find a line and replace it by itself and what is new. They \
are refused if `find` does not occur exactly once, if the front matter changes, if they copy a \
question or add a URL, a program or a command, or if the whole text gets longer than LIMIT bytes \
(it has SIZE now). Write for a reader with few tokens to spare: keep what helps, cut what does not.
"""

GROWTH = 1.5
"""How many times as long as before a skill may get."""

HEADROOM = 400
"""Bytes by which any skill may grow."""

_FILE = re.compile(r"(?<![\w/.-])(?:[\w.-]*/)*[\w.-]*[\w-]\.(?:sh|bash|py|js|ts|rb|ps1|exe)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A train case that a student got wrong."""

    question: str
    answer: str
    quote: str
    """The passage of the source that the case was made from; "" if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One replacement."""

    find: str
    replace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    edits: tuple[Edit, ...]


_REPLY = TypeAdapter(_Reply)


def refine_prompt(
    text: str, failures: Sequence[Failure], refused: Sequence[str], *, limit: int
) -> str:
    """Return the prompt for edits of a ``SKILL.md``.

    The teacher sees questions, answers and quotes of train cases; no check, no check's message and
    nothing of a held-out case.

    Args:
        text: The ``SKILL.md``.
        failures: What a student got wrong.
        refused: Why earlier edits were refused or did not help.
        limit: Most bytes of the new text.
    """
    ask = _REFINE.replace("LIMIT", f"{limit:,}").replace("SIZE", f"{len(text.encode()):,}")
    parts = [ask + "\n" + MATERIAL + marked("skill", text)]
    for failure in failures:
        parts.append(marked("question", failure.question))
        parts.append("was answered with\n" + marked("answer", failure.answer[:_LONGEST_ANSWER]))
        if failure.quote:
            parts.append("although a source says\n" + marked("quote", failure.quote))
    if refused:
        parts.append(
            "Earlier edits of yours were not kept:\n" + "\n".join(f"- {line}" for line in refused)
        )
    return "\n\n".join(parts)


def read_edits(reply: str) -> tuple[Edit, ...]:
    """Read the edits of a teacher's reply.

    Raises:
        Refused: There are none, or they cannot be read.
    """
    edits = validate_as(_REPLY, read_json_reply(reply), "edits").edits
    if not edits:
        raise Refused("the reply proposes no edit")
    return edits


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with every edit made, in order.

    Raises:
        Refused: What is to be found occurs never or several times, or nothing changes.
    """
    edited = text
    for edit in edits:
        shown = repr(edit.find[:60])
        times = edited.count(edit.find) if edit.find else 0
        if not edit.find:
            raise Refused("an edit finds nothing: 'find' is empty")
        if times != 1:
            raise Refused(f"{shown} occurs {times} times, not once")
        edited = edited.replace(edit.find, edit.replace.replace("\r\n", "\n"))
    if edited == text:
        raise Refused("the edits change nothing")
    return edited


def check_candidate(new: str, old: str, cases: Sequence[Case], *, limit: int) -> None:
    """Check a new version of a ``SKILL.md``.

    Args:
        new: The new text.
        old: The text in the skill's folder.
        cases: All cases of the skill; their questions must not be copied.
        limit: The most bytes that it may have.

    Raises:
        Refused: Something in it is not allowed.
    """
    for problem in _problems(new, old, cases, limit):
        raise Refused(problem)


def byte_limit(old: str) -> int:
    """Return how many bytes a new version may have."""
    return int(len(old.encode()) * GROWTH) + HEADROOM


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return len(text.encode()) // BYTES_PER_TOKEN


def _problems(new: str, old: str, cases: Sequence[Case], limit: int) -> Iterator[str]:
    try:
        read = read_skill_text(new, folder="")
    except BadFile as error:
        yield f"no longer a SKILL.md: {error.problems[0].what}"
        return
    before = read_skill_text(old, folder="")
    if new[: read.body_at] != before.text[: before.body_at]:
        # The description decides when a skill is used, other keys what it may do.
        yield "the frontmatter is changed: only the text below it may change"
    if (size := len(new.encode())) > limit:
        most = limit // BYTES_PER_TOKEN
        yield f"{estimate_tokens(new):,} tokens, more than the {most:,} allowed ({size:,} bytes)"
    yield from refused_parts(new, old)
    programs = set(_FILE.findall(old))
    if found := next((name for name in _FILE.findall(new) if name not in programs), ""):
        yield f"names a program that the skill did not name: {found[:80]}"
    if any(copies_words(new, case.input) and not copies_words(old, case.input) for case in cases):
        yield "copies the question of a case"
