"""Which skill a case in an evals file expects an agent to choose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_upskill.cases.evals.owner import Owner, is_sentence, names_in
from pytest_upskill.cases.evals.shapes import (
    ACCEPTABLE_SKILLS_KEY,
    EXPECTED_SKILL_KEYS,
    FORBIDDEN_SKILL_KEYS,
    TRIGGER_KEYS,
)
from pytest_upskill.cases.skill import Trigger

TRIGGER_CASE = "it does not say clearly which skill an agent should choose"

CONTRADICTION = "they contradict each other about the skill that an agent should choose"

_CHOICE_KEYS = tuple(dict.fromkeys((*TRIGGER_KEYS, *EXPECTED_SKILL_KEYS)))
"""Keys of a case that name a skill, or say whether this one should be taken."""

_TYPE_KEYS = ("type", "kind")
"""Keys of a case or an assertion whose value can say that it is about the choice of a skill."""

_CHOICE_TYPE = re.compile(
    r"(?:should_)?(?:trigger|activate)|activation|triggers|triggered|activated"
    r"|skill_(?:activated|activation|invoked|invocation|loaded|selected|triggered|trigger|used)"
)
"""Types of assertions that can mean nothing but the choice of a skill, without ``not``."""

_TYPES_WITH_VALUE = frozenset({"trigger", "activation", "skill_trigger", "skill_activation"})
"""Those that only say something with a value."""

_CASE_TYPE = re.compile(r"should_(?:not_)?(?:trigger|activate|fire)")
"""Types of cases that say whether the skill should be taken."""

_VALUE_KEYS = ("skill", "skill_name", "expected_skill", "required_skills", "value", "expected")
"""Keys of an assertion about the choice: the name of a skill, or true or false."""

_CHOICE_ASSERTION_KEYS = frozenset(
    {*_TYPE_KEYS, *_VALUE_KEYS, "id", "name", "text", "description", "negate", "weight", "config"}
)
"""All keys of an assertion that is only about the choice; with another, it could mean more."""

_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_NO_SKILL = frozenset({"none", "null", "no skill", "no-skill", "n/a", "-"})


class StatedChoice(NamedTuple):
    """What an assertion says about the skill that an agent should choose."""

    key: str
    """The key of a case that says the same."""
    value: object
    """The value of that key."""


def expected_choice(
    fields: Mapping[str, Any],
    stated: Iterable[tuple[str, StatedChoice]],
    owner: Owner | None,
    *,
    no_other_checks: bool,
) -> tuple[Trigger | None, Sequence[str]]:
    """Return which skill an agent should choose, and why that cannot be tested.

    Args:
        fields: The case.
        stated: What its assertions say about the choice, each with the key of the case that
            has the assertion.
        owner: The skill that it belongs to, if any.
        no_other_checks: Whether the case has no check of the answer; only then an empty key
            means no skill.

    Returns:
        None if the case does not say, and no reasons if what it says is clear.
    """
    reasons = [*_unclear(fields)]
    implied: dict[str, object] = {**stated_by_type(fields)}
    for key, choice in stated:
        implied.setdefault(choice.key, choice.value)
        if fields.get(choice.key, implied[choice.key]) != choice.value:
            reasons.append(f"{key}: {CONTRADICTION}")
    if reasons:
        return None, reasons
    trigger = _trigger_of({**implied, **fields}, owner, no_other_checks=no_other_checks)
    if trigger is None and implied:
        reasons.append(TRIGGER_CASE)
    return trigger, reasons


def _trigger_of(
    fields: Mapping[str, Any], owner: Owner | None, *, no_other_checks: bool
) -> Trigger | None:
    """Return which skill the keys of a case name; see `expected_choice`.

    What names a skill decides over what only says whether this one should be taken.
    """
    given = [_as_boolean(fields[key]) for key in _CHOICE_KEYS if key in fields]
    says_none_by_empty_key = any(
        key in fields
        and fields[key] in (None, "", [])
        and (no_other_checks or key in EXPECTED_SKILL_KEYS)
        for key in _CHOICE_KEYS
    )
    names = [name for value in given for name in names_in(value)]
    expected = [name for name in names if name.lower() not in _NO_SKILL]
    says_none_by_word = any(name.lower() in _NO_SKILL for name in names)
    allowed = [*expected, *names_in(fields.get(ACCEPTABLE_SKILLS_KEY))]
    forbidden = [name for key in FORBIDDEN_SKILL_KEYS for name in names_in(fields.get(key))]
    others = tuple(dict.fromkeys(name for name in allowed if not _is_called(owner, name)))
    if False in given or any(_is_called(owner, name) for name in forbidden):
        others = tuple(name for name in others if name in expected)
        return Trigger(should=False, others=others, nothing=says_none_by_empty_key and not others)
    if any(_is_called(owner, name) for name in allowed) and (expected or True in given):
        return Trigger(should=True, others=others)
    if expected:
        return Trigger(should=False, others=others)
    if says_none_by_word or (says_none_by_empty_key and True not in given):
        return Trigger(should=False, nothing=True)
    return Trigger(should=True, others=others) if True in given else None


def choice_stated_by(assertion: object) -> StatedChoice | None:
    """Return what an assertion says about the choice of a skill.

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
    if not _CHOICE_TYPE.fullmatch(kind) or not _CHOICE_ASSERTION_KEYS.issuperset(fields):
        return None
    values = [_as_boolean(fields[key]) for key in _VALUE_KEYS if fields.get(key) is not None]
    flags = {value for value in values if isinstance(value, bool)}
    names = {name for value in values for name in names_in(value)}
    if len(names) > 1 or len(flags) > 1 or (kind in _TYPES_WITH_VALUE and not values):
        return None
    is_negated = ("not" in words) != bool(assertion.get("negate"))
    is_expected = (False in flags) == is_negated
    if not names:
        return StatedChoice("should_trigger", is_expected)
    return StatedChoice("expected_skill" if is_expected else "must_not_activate", names.pop())


def stated_by_type(fields: Mapping[str, Any]) -> Mapping[str, bool]:
    """Return ``should_trigger`` if the type of a case, or its trajectory, says so."""
    kind = type_of(fields)
    if _CASE_TYPE.fullmatch(kind):
        return {"should_trigger": "not" not in kind.split("_")}
    trajectory = fields.get("trajectory")
    triggered = trajectory.get("skill_triggered") if isinstance(trajectory, dict) else None
    return {"should_trigger": triggered} if isinstance(triggered, bool) else {}


def type_of(value: Mapping[str, Any]) -> str:
    """Return the normalized type of a case or an assertion, "" if it has none."""
    kinds = (value.get(key) for key in _TYPE_KEYS)
    return normalize(next((kind for kind in kinds if isinstance(kind, str)), ""))


def normalize(kind: str) -> str:
    """Normalize a type: lower-case words with underscores between them."""
    return kind.strip().lower().replace("-", "_").replace(" ", "_")


def _unclear(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield a reason for each key whose value is a sentence where a name should stand."""
    for key in _CHOICE_KEYS:
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
