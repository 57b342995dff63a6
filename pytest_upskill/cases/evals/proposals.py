"""Checks by code that statements for a judge suggest, because they name a literal.

The rules read English, so they miss some literals and misread a few statements: what they return is
for an author to review, never to be used unseen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Key = Literal["contains", "contains_any", "not_contains"]

_LITERAL = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|\u201c([^\u201d\n]+)\u201d")
_SHORTEST, _LONGEST = 2, 80
_PLACEHOLDER = re.compile(r"<[\w -]+>|\.\.\.|\u2026|\{\w+\}|\[\w+\]")
_OPEN = re.compile(
    r"\b(?:if|when|unless|depending|optional(?:ly)?|may|might|could|ideally|preferably|such as|"
    r"e\.g\.|for (?:example|instance)|like|similar|equivalent|or (?:similar|equivalent))(?!\w)",
    re.IGNORECASE,
)
"""Words of statements that leave open what the answer says."""
_NOT = re.compile(
    r"\b(?:not|never|no|without|avoids?|avoiding|omits?|excludes?|refrains?|nor|cannot|free of)\b"
    r"|n't\b",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|in place of|as opposed to|over)\b", re.IGNORECASE
)
_EITHER = re.compile(r"\b(?:or|either|one of|any of|at least one)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A check that a statement suggests."""

    key: Key
    texts: tuple[str, ...]
    statement: str


def propose(statement: str, question: str) -> Proposal | None:
    """Return the check that a statement suggests, None if it suggests none clearly.

    Args:
        statement: A sentence about an answer, such as ``Mentions `--legacy-json```.
        question: The case's question; a literal in it is no sign of a correct answer.
    """
    if _OPEN.search(_LITERAL.sub("", statement)):
        return None
    instead = _INSTEAD.search(statement)
    wanted = statement[: instead.start()] if instead else statement
    texts = _literals(wanted)
    if not texts:
        return None
    around = _LITERAL.sub("", wanted)
    if negated := _NOT.search(wanted):
        first = _LITERAL.search(wanted)
        # A sentence that both wants and forbids says which only to a reader.
        if instead or first is None or first.start() < negated.start() or " but " in around:
            return None
        return Proposal(key="not_contains", texts=texts, statement=statement)
    texts = tuple(text for text in texts if text.casefold() not in question.casefold())
    if not texts:
        return None
    key: Key = "contains_any" if len(texts) > 1 and _EITHER.search(around) else "contains"
    return Proposal(key=key, texts=texts, statement=statement)


def _literals(text: str) -> tuple[str, ...]:
    found = ("".join(filter(None, match.groups())).strip() for match in _LITERAL.finditer(text))
    return tuple(dict.fromkeys(literal for literal in found if _is_literal(literal)))


def _is_literal(text: str) -> bool:
    return (
        _SHORTEST <= len(text) <= _LONGEST
        and any(map(str.isalnum, text))
        and not _PLACEHOLDER.search(text)
    )
