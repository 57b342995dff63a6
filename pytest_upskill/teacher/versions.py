"""The versions of a skill that a teacher writes: its draft, and edits of a ``SKILL.md``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import yaml
from pydantic import Field, TypeAdapter

from pytest_upskill.answers.prices import BYTES_PER_TOKEN
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Case
from pytest_upskill.cases.skill_text import MAX_DESCRIPTION, MAX_NAME, read_skill_text
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.teacher.additions import copies_words, refused_parts
from pytest_upskill.teacher.engine import Refused, read_json_reply, validate_as
from pytest_upskill.teacher.sources import MATERIAL, Source, marked, marked_sources

MAX_BYTES = 12_000
"""Size of a draft: about 3,000 tokens, which every use of the skill costs."""

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_WRITE = """\
You write an agent skill: a SKILL.md that a smaller model reads before it answers, for this task:

TASK

NAMED
Write what a capable model does not know by itself or gets wrong: facts, names, values, orders of \
steps, pitfalls, a short example where it saves words. Leave out what every model knows. Take \
facts from the sources below, if there are any, and invent none. The description says what the \
skill does and when to use it. No URL that is not in the sources, no command that runs on loading. \
At most LIMIT bytes.

Reply with one fenced JSON block:

```json
{"name": "lower-case-words", "description": "… Use when …", "body": "# Title\\n\\nMarkdown …"}
```
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A skill that a teacher has written."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    description: Annotated[str, Field(min_length=1, max_length=MAX_DESCRIPTION)]
    body: Annotated[str, Field(min_length=1)]

    @property
    def text(self) -> str:
        """The ``SKILL.md``."""
        front = yaml.safe_dump(
            {"name": self.name, "description": " ".join(self.description.split())},
            sort_keys=False,
            allow_unicode=True,
            width=1_000_000,
        )
        return f"---\n{front}---\n\n{self.body.strip()}\n"


_DRAFT = TypeAdapter(Draft)


def check_name(name: str) -> None:
    """Check that a skill may have a name.

    Raises:
        WorkError: It may not.
    """
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise WorkError(
            f"--output: {name!r} cannot be the name of a skill: end with lower-case words and "
            "hyphens, as in skills/csv-files"
        )


def draft_prompt(task: str, sources: Iterable[Source], *, name: str = "", refused: str = "") -> str:
    """Return the prompt for a skill; the teacher sees task and sources, but no cases.

    Args:
        task: What the skill is for.
        sources: The sources of its knowledge.
        name: The name that it must have; "" for any.
        refused: Why an earlier draft was refused; "" for the first.
    """
    named = f"Its name is {name}.\n" if name else ""
    ask = _WRITE.replace("LIMIT", f"{MAX_BYTES:,}").replace("NAMED", named).replace("TASK", task)
    parts = [ask]
    if shown := marked_sources(sources):
        parts.append(MATERIAL + shown)
    if refused:
        parts.append(f"An earlier draft of yours was refused: {refused}")
    return "\n\n".join(parts)


def read_draft(reply: str, known: str, *, name: str = "") -> Draft:
    """Read the draft of a reply.

    Args:
        reply: The text of the reply.
        known: Task and sources; the draft may repeat their URLs.
        name: The name that it must have; "" for any.

    Raises:
        Refused: There is none, or something in it is not allowed.
    """
    draft = validate_as(_DRAFT, read_json_reply(reply), "draft")
    for problem in _draft_problems(draft, known, name):
        raise Refused(problem)
    return draft


def _draft_problems(draft: Draft, known: str, name: str) -> Iterator[str]:
    if not _NAME.fullmatch(draft.name):
        yield f"the name {draft.name!r} is not lower-case words with hyphens"
    if name and draft.name != name:
        yield f"the name is {draft.name!r}, not {name!r}"
    if (size := len(draft.text.encode())) > MAX_BYTES:
        yield f"{size:,} bytes, more than the {MAX_BYTES:,} allowed"
    yield from refused_parts(draft.text, known=known)
    try:
        read_skill_text(draft.text, folder=draft.name)
    except BadFile as error:
        yield f"not a valid SKILL.md: {error.problems[0].what}"


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
    for problem in _edit_problems(new, old, cases, limit):
        raise Refused(problem)


def byte_limit(old: str) -> int:
    """Return how many bytes a new version may have."""
    return int(len(old.encode()) * GROWTH) + HEADROOM


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return len(text.encode()) // BYTES_PER_TOKEN


def _edit_problems(new: str, old: str, cases: Sequence[Case], limit: int) -> Iterator[str]:
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
