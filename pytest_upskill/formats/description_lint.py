"""Defects of a description that can be found without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pytest_upskill.formats.catalogue import Catalogue, ListedSkill

SMALL, LARGE = 8_000, 30_000
"""Characters of Claude Code's catalogue, as measured with version 2.1.330: for models with a
context window of 200,000 tokens, and with one of 1,000,000."""

_ALIKE = 0.8
"""Share of common words from which two descriptions nearly repeat each other."""
_FEWEST_WORDS = 5
"""Words of a description below which common words may be chance."""

_WHEN = re.compile(
    r"\b(when|whenever|if|before|after|while|during|triggers?|asks?|asked|asking|mentions?|wants?|"
    r"needs?|use (this|it|for|to|the)|used (for|to)|useful|"
    r"for (any|all|tasks|questions|requests))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]{3,}")


def description_findings(skill: ListedSkill, catalogue: Catalogue) -> Iterator[str]:
    """Yield what may keep an agent from choosing a skill, one line each.

    Args:
        skill: The skill.
        catalogue: The skills that an agent sees with it.
    """
    if skill in without_description(catalogue, SMALL):
        models, limit = "", LARGE
        if skill not in without_description(catalogue, LARGE):
            models, limit = " to models with a window of 200k tokens", SMALL
        yield (
            f"Claude Code shows only the name of this skill{models}: the catalogue of "
            f"{len(catalogue.skills)} skills has {_size(catalogue):,} characters, and its limit is "
            f"{limit:,}: shorten the descriptions"
        )
    if skill.description.isascii() and not _WHEN.search(skill.description):
        yield (
            "the description does not say when to use the skill: add 'Use when …' in the words "
            "that users write"
        )
    for other in catalogue.skills:
        if other.name != skill.name and _are_alike(skill.description, other.description):
            yield (
                f"the description nearly repeats that of {other.name}: say in both how the skills "
                "differ"
            )


def without_description(catalogue: Catalogue, budget: int) -> list[ListedSkill]:
    """Return the skills whose descriptions Claude Code would not show.

    All names are shown. Descriptions follow in the order of names as long as there is room.

    Args:
        catalogue: The skills, its own included.
        budget: Characters of the whole catalogue.
    """
    left = budget - sum(len(f"- {skill.name}\n") for skill in catalogue.skills)
    skills = []
    for skill in catalogue.skills:
        left -= len(f": {skill.description}")
        if left < 0:
            skills.append(skill)
    return skills


def _size(catalogue: Catalogue) -> int:
    return sum(len(f"- {skill.name}: {skill.description}\n") for skill in catalogue.skills)


def _are_alike(first: str, second: str) -> bool:
    first_words, second_words = _words(first), _words(second)
    if min(len(first_words), len(second_words)) < _FEWEST_WORDS:
        return False
    return len(first_words & second_words) >= _ALIKE * len(first_words | second_words)


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))
