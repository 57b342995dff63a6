"""Parts of cases as files describe them, and what is wrong with the values that are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum, auto
from typing import Any, NamedTuple

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.adapters.choice import ExpectedChoice
from pytest_upskill.cases.source.document import JsonPath, shown
from pytest_upskill.checks import AnyCheck
from pytest_upskill.checks.files import ProcessCheck, WorkspaceFile
from pytest_upskill.project.messages import did_you_mean

IS_OURS = f"only {CASE_FILE} can have it: give the file that name, beside the SKILL.md"
"""What is wrong with a file in our own format under another name."""


class Weight(Enum):
    """What a note on a case means for it."""

    LEFT_OUT = auto()
    """A check is left out; the case is skipped only if no positive one remains."""
    LIMIT = auto()
    """The same, but it says what must not be, such as a budget: the others count without it."""
    SKIPPED = auto()
    """What it expects cannot be measured."""
    LACKS = auto()
    """What it gives cannot be had, such as further turns: it is skipped."""
    MISTAKE = auto()
    """The file is wrong: the case is not measured, and lint fails."""
    NO_QUESTION = auto()
    """The same, where the wrong value is the question, which alone makes no case."""


@dataclass(frozen=True, slots=True)
class Note:
    """Why a part of a case is not read or not measured."""

    what: str
    weight: Weight
    path: JsonPath = ()
    """The keys that lead to the part, below the case."""

    @property
    def is_mistake(self) -> bool:
        """Whether the file is wrong."""
        return self.weight in {Weight.MISTAKE, Weight.NO_QUESTION}

    def under(self, key: str | int) -> Note:
        """Return the note on the value of a key; a reason begins with the innermost key."""
        has_key = self.is_mistake or any(isinstance(step, str) for step in self.path)
        is_reason = isinstance(key, str) and not has_key
        what = f"{key}: {self.what}" if is_reason else self.what
        return Note(what, self.weight, (key, *self.path))


class Flaw(Exception):  # noqa: N818  of a file, not an error of the code
    """Why a value cannot be read, in one line without its key."""

    def __init__(self, what: str, weight: Weight = Weight.MISTAKE) -> None:
        super().__init__(what)
        self.note = Note(what, weight)


def left_out(why: str) -> Flaw:
    """Return that nothing here can decide a check."""
    return Flaw(why, Weight.LEFT_OUT)


class Copied(NamedTuple):
    """A file or a folder that a case names."""

    name: str
    """Its name for the model; "" for a folder that is the workspace, or for the file's own name."""
    source: str
    """Its path, relative to the skill or to the case file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A case, or a part of one, as a file describes it; parts are added up."""

    prompt: str = ""
    context: str = ""
    """Text to put before the prompt."""
    name: str = ""
    skills: tuple[str, ...] = ()
    """Names of the skills that it says it belongs to."""
    checks: tuple[AnyCheck, ...] = ()
    reference: tuple[AnyCheck, ...] = ()
    """Statements about the expected answer, which count only where there are no other checks."""
    process: tuple[ProcessCheck, ...] = ()
    choice: ExpectedChoice = ()
    implied: ExpectedChoice = ()
    """What a kind of case says about the choice, which counts where nothing else says it."""
    files: tuple[WorkspaceFile | Copied, ...] = ()
    """Files of the question."""
    workspace: tuple[WorkspaceFile | Copied, ...] = ()
    """What an agent finds besides them."""
    commands: tuple[str, ...] = ()
    """Commands of the shell in the workspace before an agent starts."""
    git: bool = False
    """Whether the workspace is a git repository."""
    max_turns: int | None = None
    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def whys(self, *weights: Weight) -> list[str]:
        """Return what the notes of some weights say."""
        return [note.what for note in self.notes if note.weight in weights]

    def under(self, key: str | int) -> Draft:
        """Return the part as the value of a key."""
        notes = tuple(note.under(key) for note in self.notes)
        return replace(self, notes=notes) if notes else self

    @property
    def expects(self) -> bool:
        """Whether it says what is expected, even if that cannot be measured."""
        said = self.checks or self.reference or self.process or self.choice or self.implied
        unmeasured = (Weight.LEFT_OUT, Weight.LIMIT, Weight.SKIPPED, Weight.MISTAKE)
        return bool(said or self.whys(*unmeasured))


NOTHING = Draft()

_FIELDS = tuple(each.name for each in fields(Draft))


def merged(*parts: Draft) -> Draft:
    """Return the sum of some parts: lists are joined; of other values the first counts."""
    total: dict[str, Any] = {}
    for part in parts:
        for name in _FIELDS if part is not NOTHING else ():
            value, first = getattr(part, name), total.get(name)
            if isinstance(first, tuple):
                total[name] = first + value
            elif first is None and value not in (None, "", (), False):
                total[name] = value
    return Draft(**total)


def an_object(value: object) -> Mapping[str, Any]:
    """Return a value that must be an object; null is an empty one."""
    if value is not None and not isinstance(value, dict):
        raise Flaw(f"must be an object, got {shown(value)}")
    return value or {}


def as_list(value: object) -> list[Any]:
    """Return a value as a list: null has no item, and what is no list is the only item."""
    return value if isinstance(value, list) else [] if value is None else [value]


def misspelled(word: str, known: Iterable[str]) -> str:
    """Return which known word a word must be, " (did you mean …?)", "" if it may be another.

    It is stricter than `did_you_mean`: the words of other tools may be meant as they are.
    """
    # Above this similarity, it is a misspelling, such as ``assertons`` or ``contians``.
    return did_you_mean(word, sorted(known), 0.85)
