"""The draft of a new skill, written by a teacher that sees no cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import yaml
from pydantic import Field, TypeAdapter

from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill_text import MAX_DESCRIPTION, MAX_NAME, read_skill_text
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.teacher.additions import refused_parts
from pytest_upskill.teacher.reply import Refused, read_json_reply, validate_as
from pytest_upskill.teacher.sources import MATERIAL, Source, marked_sources

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
    for problem in _problems(draft, known, name):
        raise Refused(problem)
    return draft


def _problems(draft: Draft, known: str, name: str) -> Iterator[str]:
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
