"""Which skill a case expects an agent to choose, in every wording of other tools."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from pytest_upskill.cases.skill import Trigger, plain_name

CONTRADICTION = "it says both that the skill should be chosen and that it should not"

UNCLEAR = "no answer shows which skill an agent chose: write should_trigger or expected_skill"

_WORDS = re.compile(
    r"(?:(?:should|must|do|does|is|expected?|positive)_)*"
    r"(?P<no>(?:not|never|non?|negative|dont|don_t|doesn_t)_)?"
    r"(?:(?:be|to)_)*"
    r"(?:(?P<yes>true|yes|y|on|1|should|(?:true_)?positive|in_scope"
    r"|(?:skill_)?(?:trigger|activat|invok|load|us|fir|select|choos|tak|rout)"
    r"(?:e[ds]?|r?ed|s|ing|ion)?(?:_skill|_it)?)"
    r"|no|n|off|0|false|negative|(?:true_|hard_)negative|false_positive|near_(?:neighbou?r|miss)"
    r"|adjacent"
    r"|out_of_scope|anti|decoy|distractor|skip(?:ped)?|ignored?|reject(?:ed)?)"
)
"""Words for the choice of this skill; those without ``yes`` mean another or none."""

_NOTHING = re.compile("none|null|nothing|n_a|no_skill|no_match|no_route|")


class Says(NamedTuple):
    """What a file says about choosing a skill."""

    skill: str | None
    """Its name; "" for the one that the case belongs to, None for no skill at all."""
    is_right: bool = True


ExpectedChoice = tuple[Says, ...]
"""What a case says about the skill that an agent should choose."""

NO_SKILL: ExpectedChoice = (Says(None),)


def own_skill(*, should: bool) -> ExpectedChoice:
    """Return that the skill of the case should be chosen, or not."""
    return (Says("", should),)


class UnknownSkill(Exception):  # noqa: N818  a reason to skip a case, not an error of the code
    """A skill that should be chosen and does not exist; the message is its name."""


def meaning_of(word: str) -> ExpectedChoice:
    """Return what a word for the choice of a skill says; () for any other, such as a name."""
    plain = normalize(word)
    if _NOTHING.fullmatch(plain):
        return NO_SKILL
    found = _WORDS.fullmatch(plain)
    return own_skill(should=bool(found["yes"]) != bool(found["no"])) if found else ()


_SKILL = r"(?:(?:the|this) )?(?:[`'\"]?(?P<name>[\w:-]*\w)[`'\"]? )?(?P<own>skill)"
_NAME = r"[`'\"]?(?P<name>[\w:-]*\w)(?:/SKILL\.md)?[`'\"]?"
_MODAL = r"(?:should|must|shall|will|does|did|do|is|was) "
_NOT = r"(?P<no>(?:not|never) )"
_TAKEN = r"(?:triggers?|activates?|fires?|triggered|activated|invoked|loaded|used|selected|chosen)"
_AGENT = rf"(?:(?:the )?(?:agent|assistant|model) )?(?:{_MODAL})?{_NOT}?(?:\w+ or )?"
_SENTENCES = tuple(
    re.compile(rf"{pattern}(?![\w-])(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"{_SKILL} (?:{_MODAL})?{_NOT}?(?:be |gets )?{_TAKEN}",
        rf"{_AGENT}(?:trigger|activate|invoke|load|use)s? {_SKILL}",
        rf"{_AGENT}(?:trigger|activate|invoke|route)(?:[sd]? to|s)? (?:the )?{_NAME}",
        rf"{_NAME} {_MODAL}{_NOT}(?:be )?{_TAKEN}",
        rf"(?P<bare>{_MODAL}){_NOT}(?:trigger|activate)",
    )
)
"""Beginnings of sentences about whether a skill is chosen, by its name or as the case's own."""

_END = re.compile(
    r"(?: (?:here|automatically"
    r"|(?:for|on|by|in) (?:this|the) (?:prompt|query|question|request|message|input|case)))?\.?"
    r"(?P<why>\s*(?:[-\u2014\u2013:;,(]| because | since | as ).*)?",
    re.IGNORECASE | re.DOTALL,
)
"""What may follow in a sentence that is only about that; a denial may say why."""

_MANNER = re.compile(
    r"(?: (?:from|on|without|when|even|despite|because|since|unless)\b(?:(?! and |,).)*)?\.?",
    re.IGNORECASE | re.DOTALL,
)
"""What may follow too if the case says the choice elsewhere, so that it is hardly another claim."""

_AND_MORE = re.compile(
    r"(?:the |this )?skill (?:activates|triggers|recognizes the trigger phrase) (?:and|with)\b",
    re.IGNORECASE,
)
"""How a statement about the answer begins that says too that the skill is chosen."""


FITS = "The answer fits this: "
"""What stands before a description of the answer, to make it a statement."""


def choice_in(
    sentence: str, is_skill: Callable[[str], bool], *, is_said: bool
) -> tuple[ExpectedChoice, bool]:
    """Return what a sentence says about the choice of a skill, and whether it says no more.

    Args:
        sentence: A statement about an answer.
        is_skill: Returns whether there is a skill of a name.
        is_said: Whether its case says elsewhere which skill should be chosen.
    """
    text = sentence.removeprefix(FITS).strip()
    if _AND_MORE.match(text):
        return own_skill(should=True), False
    for found in filter(None, (each.fullmatch(text) for each in _SENTENCES)):
        parts = found.groupdict("")
        end = _END.fullmatch(parts["rest"])
        is_only = bool(end and (parts["no"] or not end["why"]))
        is_only = is_only or (is_said and _MANNER.fullmatch(parts["rest"]) is not None)
        name = parts.get("name", "")
        is_of_choice = parts.get("own") or (is_said if "bare" in parts else is_skill(name))
        if is_of_choice and (is_only or parts["rest"].startswith(" and ")):
            return (Says(name, not parts["no"]),), is_only
    return (), False


def trigger_of(
    choice: ExpectedChoice, names: Collection[str], exists: Callable[[str], bool]
) -> Trigger | None:
    """Return the expectation of a query.

    Args:
        choice: What its case says.
        names: All names of the skill that it belongs to.
        exists: Returns whether there is a skill of a name.

    Returns:
        None if it says nothing about this skill, such as that another one is wrong.

    Raises:
        ValueError: The case contradicts itself.
        UnknownSkill: None of the skills that it expects exists.
    """
    if {Says("", is_right=True), Says("", is_right=False)} <= {*choice}:
        raise ValueError(CONTRADICTION)
    expected = [says.skill for says in choice if says.skill and says.is_right]
    mine = _names_of_own({plain_name(name) for name in names}, expected, exists)
    others = [name for name in expected if plain_name(name) not in mine]
    is_own, nothing = len(others) < len(expected), Says(None) in choice
    known = tuple(dict.fromkeys(filter(exists, others)))
    if others and not (known or is_own or nothing or any(says.skill == "" for says in choice)):
        raise UnknownSkill(others[0])
    wrong = [plain_name(says.skill or "") for says in choice if not says.is_right]
    if not mine.isdisjoint(wrong) or "" in wrong:
        return Trigger(should=False, others=known, nothing=nothing and not known)
    should = is_own or (Says("") in choice and not known)
    if should or known:
        return Trigger(should=should, others=known)
    return Trigger(should=False, nothing=True) if nothing else None


def _names_of_own(
    names: Collection[str], expected: Iterable[str], exists: Callable[[str], bool]
) -> set[str]:
    """Return plain names of a skill, with those that are expected and lack its group.

    Of several words, such a name hardly means another skill.
    """
    short = {
        plain
        for plain in map(plain_name, expected)
        if "-" in plain and not exists(plain) and any(n.endswith(f"-{plain}") for n in names)
    }
    return short.union(names)


def skills_in(value: object, *, are_right: bool = True) -> ExpectedChoice:
    """Return the skills in a value, which is a name or a list of names."""
    return tuple(Says(name, are_right) for name in names_in(value))


def names_in(value: object) -> tuple[str, ...]:
    """Return the names of skills in a value, which is a text or a list of texts."""
    given = value if isinstance(value, list | tuple) else [value]
    names = (name.strip().removeprefix("skill:").strip() for name in given if isinstance(name, str))
    return tuple(filter(None, names))


def normalize(kind: str) -> str:
    """Normalize a type or a word: lower-case words with underscores between them."""
    return re.sub(r"[^a-z0-9]+", "_", kind.strip().lower()).strip("_")
