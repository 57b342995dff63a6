"""Which skill a case expects an agent to choose, in every wording of other tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from pytest_upskill.cases.skill import Trigger, plain_name

CONTRADICTION = "it says both that the skill should be chosen and that it should not"

UNCLEAR = "no answer shows which skill an agent chose: write should_trigger or expected_skill"

_WORDS = re.compile(
    r"(?:(?:should|must|do|does|is|expected?)_)*(?P<no>(?:not|never|no|dont|don_t|doesn_t)_)?"
    r"(?:(?:be|to)_)*"
    r"(?:(?P<yes>true|yes|should|(?:true_)?positive|in_scope"
    r"|(?:skill_)?(?:trigger|activat|invok|load|us|fir|select|choos|tak|rout)"
    r"(?:e[ds]?|r?ed|s|ing|ion)?(?:_skill|_it)?)"
    r"|no|false|negative|(?:true_|hard_)negative|false_positive|near_(?:neighbou?r|miss)|adjacent"
    r"|out_of_scope|anti|decoy|distractor|skip(?:ped)?|ignored?|reject(?:ed)?)"
)
"""Words for the choice of this skill; those without ``yes`` mean another or none."""

_NOTHING = re.compile("none|null|nothing|n_a|no_skill|no_match|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a file says about the skill that an agent should choose."""

    should: frozenset[bool] = frozenset()
    """Whether it is the skill that the case belongs to; both values are a contradiction."""
    expected: tuple[str, ...] = ()
    """Names of skills, one of which it is."""
    forbidden: tuple[str, ...] = ()
    nothing: bool = False
    """Whether no skill should be chosen."""

    def __or__(self, other: Choice) -> Choice:
        return Choice(
            should=self.should | other.should,
            expected=self.expected + other.expected,
            forbidden=self.forbidden + other.forbidden,
            nothing=self.nothing or other.nothing,
        )

    def __bool__(self) -> bool:
        return bool(self.should or self.expected or self.forbidden or self.nothing)


class UnknownSkill(Exception):  # noqa: N818  a reason to skip a case, not an error of the code
    """A skill that should be chosen and does not exist; the message is its name."""


def meaning_of(word: str) -> Choice | None:
    """Return what a word for the choice of a skill says; None for any other, such as a name."""
    plain = normalize(word)
    if _NOTHING.fullmatch(plain):
        return Choice(nothing=True)
    found = _WORDS.fullmatch(plain)
    return Choice(should=frozenset({bool(found["yes"]) != bool(found["no"])})) if found else None


_SKILL = r"(?:(?:the|this) )?(?:[`'\"]?(?P<name>[\w:-]+)[`'\"]? )?skill"
_MODAL = r"(?:should|must|shall|will|does|do|is|was) "
_NOT = r"(?P<no>(?:not|never) )"
_TAKEN = r"(?:triggers?|activates?|fires?|triggered|activated|invoked|loaded|used|selected|chosen)"
_WHERE = (
    r"(?: (?:here|automatically"
    r"|(?:for|on|by|in) (?:this|the) (?:prompt|query|question|request|message|input|case)))?\.?"
)
_WHY = r"(?P<why>\s*(?:[-\u2014\u2013:;,(]| because | since | as ).*)?"
_SENTENCES = tuple(
    re.compile(pattern + _WHERE + _WHY, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"{_SKILL} (?:{_MODAL})?{_NOT}?(?:be |gets )?{_TAKEN}",
        rf"(?:{_MODAL})?{_NOT}?(?:trigger|activate|invoke|load|use)s? {_SKILL}",
        rf"(?P<bare>[\w:-]+) {_MODAL}{_NOT}(?:be )?{_TAKEN}",
    )
)
"""Sentences that are only about whether a skill is chosen; a denial may say why."""


FITS = "The answer fits this: "
"""What stands before a description of the answer, to make it a statement."""


def choice_in(sentence: str, is_skill: Callable[[str], bool]) -> Choice | None:
    """Return what a sentence says about the choice of a skill, None if it says more or nothing.

    Args:
        sentence: A statement about an answer.
        is_skill: Returns whether there is a skill of a name.
    """
    text = sentence.removeprefix(FITS).strip()
    found = next(filter(None, (each.fullmatch(text) for each in _SENTENCES)), None)
    if found is None or (found["why"] and not found["no"]):
        return None
    groups = found.groupdict()
    if (bare := groups.get("bare")) and not is_skill(bare):
        return None
    name = bare or groups["name"]
    if name is None:
        return Choice(should=frozenset({not found["no"]}))
    return Choice(forbidden=(name,)) if found["no"] else Choice(expected=(name,))


def trigger_of(
    choice: Choice, own: Collection[str], exists: Callable[[str], bool]
) -> Trigger | None:
    """Return the expectation of a query.

    Args:
        choice: What its case says.
        own: All names of the skill that it belongs to.
        exists: Returns whether there is a skill of a name.

    Returns:
        None if it says nothing about this skill, such as that another one is wrong.

    Raises:
        ValueError: The case contradicts itself.
        UnknownSkill: None of the skills that it expects exists.
    """
    if len(choice.should) > 1:
        raise ValueError(CONTRADICTION)
    names = {plain_name(name) for name in own}
    # Of several words, a name without the group of its skill hardly means another one.
    names |= {
        plain
        for plain in map(plain_name, choice.expected)
        if "-" in plain and not exists(plain) and any(n.endswith(f"-{plain}") for n in names)
    }
    others = [name for name in choice.expected if plain_name(name) not in names]
    is_own = len(others) < len(choice.expected)
    known = tuple(dict.fromkeys(filter(exists, others)))
    if others and not (known or is_own or choice.nothing):
        raise UnknownSkill(others[0])
    if False in choice.should or any(plain_name(name) in names for name in choice.forbidden):
        return Trigger(should=False, others=known, nothing=choice.nothing and not known)
    should = is_own or (True in choice.should and not others)
    if should or known:
        return Trigger(should=should, others=known)
    return Trigger(should=False, nothing=True) if choice.nothing else None


def names_in(value: object) -> Iterator[str]:
    """Yield the names of skills in a value, which is a text or a list of texts."""
    for name in value if isinstance(value, list | tuple) else [value]:
        if isinstance(name, str) and name.strip():
            yield name.strip().removeprefix("skill:").strip()


def normalize(kind: str) -> str:
    """Normalize a type or a word: lower-case words with underscores between them."""
    return re.sub(r"[^a-z0-9]+", "_", kind.strip().lower()).strip("_")
