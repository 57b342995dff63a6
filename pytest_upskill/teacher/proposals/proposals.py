"""Proposals: the request for new cases, and the reply before it is validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from pytest_upskill.formats.skill_meta.expected import Expected
from pytest_upskill.formats.skill_meta.text_checks import keys_of
from pytest_upskill.teacher.sources.read import Source
from pytest_upskill.teacher.work.marks import MATERIAL, marked, marked_sources
from pytest_upskill.teacher.work.reply import Refused, read_json_reply, validate_as

BATCH = 10
"""Number of proposals in one request."""

Text = Annotated[str, Field(min_length=1)]

_KEYS = "; ".join(
    f'"{key}" ({makes.kind.for_teacher})'
    for key, (_, makes) in keys_of(Expected).items()
    if makes.kind.for_teacher
)
CHECKS = f"""\
`expected` holds checks, all of which must hold: {_KEYS}. At least one must fail for an empty \
answer. Accept every right answer, however it is worded, and no wrong one: prefer a regex of what \
must be said to a sentence, and `run` or `compile` for code."""

_PROPOSE = """\
You write test cases for an agent skill: a text that helps a model with this task:

TASK

Below are the sources of the knowledge that the skill will hold. The model that is tested does not \
see them. Propose COUNT cases on different points: questions as a user would ask them, self-\
contained, which somebody who does not know the sources gets wrong, and whose answers code can \
check. Do not give the answer, or the words that are looked for, away in the question, and do not \
copy sentences of the sources into it. CHECKS

Reply with one fenced JSON block:

```json
{"proposals": [{"id": "short-name", "input": "the question", "expected": {"regex": "(?i)0x5A"},
  "quote": "the passage of a source that holds the answer, verbatim",
  "reference": "a right answer", "alternatives": ["another right answer, reworded", "a third"],
  "wrong": ["a plausible wrong answer", "another"]}]}
```
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """A teacher's right and wrong answers, by which its checks are validated."""

    reference: Text
    alternatives: Annotated[tuple[Text, ...], Field(min_length=2)]
    wrong: Annotated[tuple[Text, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal(Answers):
    """A case that a teacher proposes."""

    id: str = ""
    input: Text
    expected: Mapping[str, Any]
    quote: str = ""


_PROPOSAL = TypeAdapter(Proposal)


def propose_prompt(
    task: str, sources: Iterable[Source], known: Sequence[str], *, count: int
) -> str:
    """Return the prompt for proposals; the teacher sees the sources, but no draft of a skill.

    Args:
        task: What the skill is for.
        sources: The sources of its knowledge.
        known: Questions that exist already.
        count: How many proposals to ask for.
    """
    ask = _PROPOSE.replace("CHECKS", CHECKS).replace("COUNT", str(count)).replace("TASK", task)
    parts = [ask + "\n" + MATERIAL + marked_sources(sources)]
    if known:
        listed = "\n".join(f"- {question}" for question in known)
        parts.append("There are these questions already:\n" + marked("questions", listed))
    return "\n\n".join(parts)


def read_entries(reply: str) -> list[Any]:
    """Return the entries in the list of a reply, unvalidated.

    Raises:
        Refused: The reply has no such list.
    """
    value = read_json_reply(reply)
    entries = value.get("proposals") if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise Refused("the reply has no list of proposals")
    return entries


def read_proposal(entry: object) -> Proposal:
    """Read an entry of a reply.

    Raises:
        Refused: It is not a proposal.
    """
    return validate_as(_PROPOSAL, entry)
