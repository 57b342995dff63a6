"""A first case file for a skill without cases, made without a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_upskill.cases.skill import Skill

_FENCE = re.compile(
    r"^(?P<mark>```++|~~~++)[ \t]*(?P<language>[\w+-]*).*?^(?P=mark)", re.MULTILINE | re.DOTALL
)
_HEADING = re.compile(r"^#{1,4}\s+(.+?)\s*#*$", re.MULTILINE)
_CODE_SPAN = re.compile(r"`([^`\n]{3,40})`")
_TELLING = re.compile(r"[\d_./=:@-]|\w[A-Z]")
"""A code span with one of these is hardly said by chance."""
_COMPILED: Mapping[str, str] = {
    **dict.fromkeys(("python", "py", "python3"), "python"),
    **dict.fromkeys(("cpp", "c++", "cc", "cxx"), "cpp"),
    **dict.fromkeys(("cuda", "cu"), "cuda"),
    "c": "c",
}
"""Languages of fenced blocks, by the names that Markdown has for them."""
_SHOWN_LITERALS = 8
_KINDS = (
    ("Every string must be in the answer; letter case is ignored.", "contains", 1),
    ("One of these strings must be in the answer.", "contains_any", 2),
)
"""Kinds of first cases: comment, key of the check, and number of literals."""
_NOT_FOR_IT: Mapping[str, Any] = {
    "$comment": "A similar request that is not for the skill: no agent should choose it.",
    "id": "not-for-this-skill",
    "input": "Replace this with a similar request that the skill is not for",
    "should_trigger": False,
}


def commented_file(skill: Skill, command: str) -> Mapping[str, Any]:
    """Return a case file to be filled in, whose comments explain it.

    Args:
        skill: The skill, without cases.
        command: The command that runs the cases at no cost.
    """
    text = _FENCE.sub("", skill.text)
    notes = [
        f"The first cases of the skill {skill.name}. Rewrite every input and expected, then run:",
        command,
        "Ask what a user of the skill would ask, in their words, without giving the answer away.",
        "Check a fact that every correct answer states, and that only the skill tells.",
        "Ten cases tell more than ten runs of one.",
    ]
    if literals := _literals(text):
        notes.append(f"Literals of the skill that a check could look for: {', '.join(literals)}")
    cases = [*_fact_cases(text), *_code(skill.text), _NOT_FOR_IT]
    return {"$comment": notes, "cases": cases}


def _fact_cases(text: str) -> list[Mapping[str, Any]]:
    """Return a case for each of the first sections that name a literal, or else one to fill in."""
    _, *parts = _HEADING.split(text)
    sections = zip(parts[::2], parts[1::2], strict=True)
    found = [(title, literals) for title, part in sections if (literals := _literals(part))]
    shown = found[: len(_KINDS)] or [("a fact of the skill", ["a string of the answer"])]
    cases: list[Mapping[str, Any]] = []
    for (title, literals), (note, key, count) in zip(shown, _KINDS, strict=False):
        plain = title.replace("`", "")
        cases.append(
            {
                "$comment": note,
                "id": re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or key,
                "input": f"Replace this with a question about: {plain}",
                "expected": {key: literals[:count]},
            }
        )
    return cases


def _code(text: str) -> list[Mapping[str, Any]]:
    """Return a case for the first language of the skill's blocks that can be built."""
    languages = (_COMPILED.get(match["language"].lower()) for match in _FENCE.finditer(text))
    language = next(filter(None, languages), None)
    if language is None:
        return []
    note = "The code of the answer must build. Add 'run' with tests that it must pass."
    return [
        {
            "$comment": note,
            "id": f"{language}-code",
            "input": f"Replace this with a task whose answer is {language} code",
            "expected": {"compile": language},
        }
    ]


def _literals(text: str) -> list[str]:
    """Return the first telling code spans of a text without fenced blocks."""
    telling = (span for span in _CODE_SPAN.findall(text) if _TELLING.search(span))
    return list(dict.fromkeys(telling))[:_SHOWN_LITERALS]
