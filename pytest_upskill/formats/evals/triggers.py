"""Which skill a case in an evals file expects an agent to choose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_upskill.formats.evals.keys import ACCEPTABLE, FORBIDDEN, SKILLS, TRIGGERS
from pytest_upskill.formats.evals.owner import Owner, is_sentence, names_in
from pytest_upskill.formats.skill import Trigger

TRIGGER_CASE = "it does not say clearly which skill an agent should choose"

CONTRADICTION = "they contradict each other about the skill that an agent should choose"

_SAYING = tuple(dict.fromkeys((*TRIGGERS, *SKILLS)))
"""Keys of a case that name a skill, or say whether this one should be taken."""

_TYPES = ("type", "kind")
"""Keys of a case or an assertion whose value can say that it is about the choice of a skill."""

_CHOICE = re.compile(
    r"(?:should_)?(?:trigger|activate)|activation|triggers|triggered|activated"
    r"|skill_(?:activated|activation|invoked|invocation|loaded|selected|triggered|trigger|used)"
)
"""Types of assertions that can mean nothing but the choice of a skill, without ``not``."""

_TOPICS = frozenset({"trigger", "activation", "skill_trigger", "skill_activation"})
"""Those that only say something with a value."""

_CASE_TYPE = re.compile(r"should_(?:not_)?(?:trigger|activate|fire)")
"""Types of cases that say whether the skill should be taken."""

_VALUES = ("skill", "skill_name", "expected_skill", "required_skills", "value", "expected")
"""Keys of an assertion about the choice: the name of a skill, or true or false."""

_BESIDE = frozenset(
    {*_TYPES, *_VALUES, "id", "name", "text", "description", "negate", "weight", "config"}
)
"""Keys that make such an assertion redundant."""

_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_NOTHING = frozenset({"none", "null", "no skill", "no-skill", "n/a", "-"})


class Choice:
    """What a case and its assertions say about the skill that an agent should choose.

    Args:
        value: The case.

    Attributes:
        reasons: Why what they say cannot be tested.
    """

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.reasons = [*_unclear(value)]
        self._value = value
        self._stated: dict[str, object] = dict(_of_case(value))

    def take(self, assertion: object, key: object) -> bool:
        """Record what an assertion says about the choice; return False if it is about the answer.

        Args:
            assertion: The assertion.
            key: The key of the case that has it.
        """
        stated = _of_assertion(assertion)
        if stated is None:
            return False
        about, booleans = stated
        if self._value.get(about, self._stated.setdefault(about, booleans)) != booleans:
            self.reasons.append(f"{key}: {CONTRADICTION}")
        return True

    def trigger(self, owner: Owner | None, *, alone: bool) -> Trigger | None:
        """Return which skill should be chosen; see `trigger_of`."""
        if self.reasons:
            return None
        found = trigger_of({**self._stated, **self._value}, owner, alone=alone)
        if found is None and self._stated:
            self.reasons.append(TRIGGER_CASE)
        return found


def trigger_of(value: Mapping[str, Any], owner: Owner | None, *, alone: bool) -> Trigger | None:
    """Return which skill a case expects an agent to choose, None if it does not say.

    What names a skill decides over what only says whether this one should be taken.

    Args:
        value: The case.
        owner: The skill that it belongs to, if any.
        alone: Whether the case asks for nothing else; only then an empty key means no skill.
    """
    booleans = [_as_boolean(value[key]) for key in _SAYING if key in value]
    empty = any(
        key in value and value[key] in (None, "", []) and (alone or key in SKILLS)
        for key in _SAYING
    )
    names = [name for each in booleans for name in names_in(each)]
    nothing = [name for name in names if name.lower() in _NOTHING]
    wanted = [name for name in names if name not in nothing]
    allowed = [*wanted, *names_in(value.get(ACCEPTABLE))]
    forbidden = [name for key in FORBIDDEN for name in names_in(value.get(key))]
    others = tuple(dict.fromkeys(name for name in allowed if not _is_called(owner, name)))
    if False in booleans or any(_is_called(owner, name) for name in forbidden):
        others = tuple(name for name in others if name in wanted)
        return Trigger(should=False, others=others, nothing=empty and not others)
    if any(_is_called(owner, name) for name in allowed) and (wanted or True in booleans):
        return Trigger(should=True, others=others)
    if wanted:
        return Trigger(should=False, others=others)
    if nothing or (empty and True not in booleans):
        return Trigger(should=False, nothing=True)
    return Trigger(should=True, others=others) if True in booleans else None


def _of_assertion(assertion: object) -> tuple[str, object] | None:
    """Return what an assertion says about the choice of a skill, as a key of a case and its value.

    Args:
        assertion: The assertion.

    Returns:
        None if the assertion is about something else, or could mean more than that.
    """
    if not isinstance(assertion, dict):
        return None
    words = type_of(assertion).split("_")
    kind = "_".join(word for word in words if word != "not")
    config = assertion.get("config")
    fields = assertion | config if isinstance(config, dict) else assertion
    if not _CHOICE.fullmatch(kind) or not _BESIDE.issuperset(fields):
        return None
    values = [_as_boolean(fields[key]) for key in _VALUES if fields.get(key) is not None]
    flags = {value for value in values if isinstance(value, bool)}
    names = {name for value in values for name in names_in(value)}
    if len(names) > 1 or len(flags) > 1 or (kind in _TOPICS and not values):
        return None
    negated = ("not" in words) != bool(assertion.get("negate"))
    wanted = (False not in flags) is not negated
    if not names:
        return "should_trigger", wanted
    return ("expected_skill" if wanted else "must_not_activate"), names.pop()


def _of_case(value: Mapping[str, Any]) -> Mapping[str, bool]:
    """Return ``should_trigger`` if the type of a case, or its trajectory, says so."""
    kind = type_of(value)
    if _CASE_TYPE.fullmatch(kind):
        return {"should_trigger": "not" not in kind.split("_")}
    trajectory = value.get("trajectory")
    triggered = trajectory.get("skill_triggered") if isinstance(trajectory, dict) else None
    return {"should_trigger": triggered} if isinstance(triggered, bool) else {}


def type_of(value: Mapping[str, Any]) -> str:
    """Return the normalized type of a case or an assertion, "" if it has none."""
    kinds = (value.get(key) for key in _TYPES)
    return normalize(next((kind for kind in kinds if isinstance(kind, str)), ""))


def normalize(kind: str) -> str:
    """Normalize a type: lower-case words with underscores between them."""
    return kind.strip().lower().replace("-", "_").replace(" ", "_")


def _unclear(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield a reason for each key whose value is a sentence where a name should stand."""
    for key in _SAYING:
        for name in names_in(value.get(key)):
            if is_sentence(name):
                yield (
                    f"{key}: {name[:40]!r} is not the name of a skill: write true, false or a name"
                )


def _as_boolean(given: object) -> object:
    """Return true or false for the words that mean them, else the value."""
    return _WORDS.get(str(given).strip().lower(), given)


def _is_called(owner: Owner | None, name: str) -> bool:
    return owner is not None and owner.is_called(name)
