"""Which skill a case in an evals file expects an agent to take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_upskill.formats.evals.owner import Owner, names_in
from pytest_upskill.formats.skill import Trigger

TRIGGERS = (
    "should_trigger",
    "should_activate",
    "should_fire",
    "expected_activation",
    "expected_trigger",
    "expect_activation",
    "expect_trigger",
)
"""Keys that say whether the skill should be taken, or name the one that should."""

SKILLS = (
    "expected_skill",
    "expect_skill",
    "expected_skills",
    "expected_activation",
    "expected_triggers",
    "skills_expected_to_activate",
    "preferred_skill",
)
"""Keys that name the skill that should be taken; null for none."""

FORBIDDEN = ("must_not_activate", "forbidden_skills")
"""Keys of skills that should not be taken."""

ACCEPTABLE = "acceptable_skills"
TRIGGER_KEYS = frozenset({*TRIGGERS, *SKILLS, *FORBIDDEN, ACCEPTABLE})

_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_NOTHING = frozenset({"none", "null", "no skill", "no-skill", "n/a", "-"})
_MOST_WORDS = 4
"""A text with this many blanks or more is a sentence, not a name."""


def trigger_of(value: Mapping[str, Any], owner: Owner | None, *, alone: bool) -> Trigger | None:
    """Return which skill a case expects an agent to take, None if it does not say.

    What names a skill decides over what only says whether this one should be taken.

    Args:
        value: The case.
        owner: The skill that it belongs to, if any.
        alone: Whether the case asks for nothing else; only then an empty key means no skill.
    """
    said = [_said(value[key]) for key in dict.fromkeys((*TRIGGERS, *SKILLS)) if key in value]
    empty = any(
        key in value and value[key] in (None, "", []) and (alone or key in SKILLS)
        for key in (*TRIGGERS, *SKILLS)
    )
    names = [name for each in said if not isinstance(each, bool) for name in names_in(each)]
    nothing = [name for name in names if name.lower() in _NOTHING]
    wanted = [name for name in names if name not in nothing]
    allowed = [*wanted, *names_in(value.get(ACCEPTABLE))]
    forbidden = [name for key in FORBIDDEN for name in names_in(value.get(key))]
    others = tuple(dict.fromkeys(name for name in allowed if not _is(owner, name)))
    if False in said or any(_is(owner, name) for name in forbidden):
        others = tuple(name for name in others if name in wanted)
        return Trigger(should=False, others=others, nothing=empty and not others)
    if any(_is(owner, name) for name in allowed) and (wanted or True in said):
        return Trigger(should=True, others=others)
    if wanted:
        return Trigger(should=False, others=others)
    if nothing or (empty and True not in said):
        return Trigger(should=False, nothing=True)
    return Trigger(should=True, others=others) if True in said else None


def unclear(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield a reason for each key whose value is a sentence where a name should stand."""
    for key in dict.fromkeys((*TRIGGERS, *SKILLS)):
        for name in names_in(value.get(key)):
            if name.count(" ") >= _MOST_WORDS:
                yield (
                    f"{key}: {name[:40]!r} is not the name of a skill: write true, false or a name"
                )


def _said(given: object) -> object:
    """Return true or false for the words that mean them, else the value."""
    return _WORDS.get(str(given).strip().lower(), given)


def _is(owner: Owner | None, name: str) -> bool:
    return owner is not None and owner.is_called(name)
