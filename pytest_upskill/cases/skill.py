"""The data model of skills and cases."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal, get_args

from pytest_upskill.checks import AnyCheck, Judge, OfCalls, Sandboxed
from pytest_upskill.checks.files import (
    NO_SETUP,
    OfWorkspace,
    ProcessCheck,
    RunsCommand,
    Setup,
    WorkspaceFile,
    placed,
)
from pytest_upskill.checks.text import Contains
from pytest_upskill.project.messages import counted, listed

MAX_PROMPT_BYTES, MAX_PROMPT_FILES = 256 << 10, 100
"""Maximum of a case's files that a prompt can hold; an agent finds more."""


_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")

PLACEHOLDER = "Replace this with "
"""How the questions and texts begin that ``pytest-upskill init`` writes, to be replaced."""


def plain_name(name: str) -> str:
    """Normalize the name of a skill: drop path and namespace, lower-case it, join with hyphens."""
    last = name.strip().removesuffix("/SKILL.md").rstrip("/").rpartition("/")[2]
    return _NOT_IN_NAMES.sub("-", last.rpartition(":")[2].lower()).strip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Which skill an agent should choose for a query."""

    should: bool
    """Whether it is the skill that the case belongs to."""
    others: tuple[str, ...] = ()
    """Names of other skills that are right too, or instead."""
    nothing: bool = False
    """Whether no skill at all should be chosen."""

    def is_right(self, taken: str | None, own: str) -> bool:
        """Return whether choosing a skill, or none, is right.

        Args:
            taken: Name of the skill that was taken; None for none.
            own: Name of the skill that the case belongs to.
        """
        if taken == own:
            return self.should
        if taken in self.others:
            return True
        return not (self.should or self.others or (self.nothing and taken is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question to a model, and the checks of its answer."""

    id: str
    """Unique in its file and stable: the given ``id``, or derived from the input."""
    input: str
    checks: tuple[AnyCheck, ...]
    """The checks in the order of the file, all of which must pass."""
    files: tuple[WorkspaceFile, ...] = ()
    """Files of the question: a model finds them in the prompt, an agent in its workspace."""
    min_pass_rate: float | None = None
    """Minimum share of runs that pass, from 0 to 1; None for the option's."""
    models: tuple[str, ...] | None = None
    """Labels of the models that the case is for; None for all."""
    tags: tuple[str, ...] = ()
    reference: str = ""
    """An answer known to be right, which only the judge sees; empty for none."""
    train: bool = False
    """Whether the skill's text was chosen by this case, so that it does not count for the lift."""
    quote: str = ""
    """The passage of the source that the case was made from; "" if unknown."""
    line: int = 1
    """Line of the case in its file, from 1."""
    column: int = 1
    file: str = ""
    """Its file, from the folder of the suite; empty if it is that of the skill's cases."""
    skip: str | None = None
    """Why no answer is checked, such as a feature that needs an agent; None if answers are."""
    trigger: Trigger | None = None
    """Which skill an agent should choose; None if the case does not say."""

    workspace: tuple[WorkspaceFile, ...] = ()
    """What an agent finds in its workspace besides ``files``."""
    setup: Setup = NO_SETUP
    """What is done in the workspace before an agent starts."""
    max_turns: int | None = None
    """Maximum number of an agent's turns; None for the default."""
    process: tuple[ProcessCheck | OfCalls, ...] = ()
    """What the agent is expected to do; reported, never part of a pass rate."""

    @property
    def place(self) -> str:
        """Line and column in the file."""
        return f"{self.line}:{self.column}"

    @property
    def staged(self) -> tuple[WorkspaceFile, ...]:
        """All files that an agent finds in its workspace before the setup."""
        files = (*placed(self.files, self.input), *self.workspace)
        return tuple({file.name: file for file in files}.values())

    @property
    def unwritten(self) -> str:
        """What is still as ``pytest-upskill init`` wrote it, with the cure; "" if nothing is."""
        if self.input.startswith(PLACEHOLDER):
            return "the input is still a placeholder: write a question"
        contained = (check.text for check in self.checks if isinstance(check, Contains))
        if any(text.startswith(PLACEHOLDER) for text in contained):
            return "a check is still a placeholder: write a text that every right answer has"
        return ""

    @property
    def judge_checks(self) -> list[Judge]:
        """The checks that only a judge can decide."""
        return [check for check in self.checks if isinstance(check, Judge)]

    @property
    def agent_key(self) -> str | None:
        """The key for which the case needs an agent, None if it needs none."""
        size = sum(len(file.text) for file in self.files)
        are_many = size > MAX_PROMPT_BYTES or len(self.files) > MAX_PROMPT_FILES
        stated = {
            "workspace": bool(self.workspace),
            "setup": bool(self.setup.commands),
            "git": bool(self.setup.git),
            "files": are_many or any(file.binary for file in self.files),
            "max_turns": self.max_turns is not None,
        }
        of_checks = (
            f"{check.name}.file" if isinstance(check, Sandboxed) else check.name
            for check in self.checks
            if isinstance(check, OfWorkspace | OfCalls | RunsCommand)
            or (isinstance(check, Sandboxed) and check.file)
        )
        keys = (key for key, is_stated in stated.items() if is_stated)
        return next(chain(keys, of_checks, (check.name for check in self.process)), None)

    @property
    def is_answered(self) -> bool:
        """Whether the case has trials in which an answer is checked, or could be."""
        if self.trigger is None:
            return True
        return self.trigger.should and bool(self.checks or self.process or self.skip)

    def why_not_for(self, labels: Iterable[str]) -> str | None:
        """Return why the case is for no model with one of these labels, None if it is for one."""
        chosen = list(labels)
        if self.models is None or not set(chosen).isdisjoint(self.models):
            return None
        return (
            f"only for {' or '.join(self.models)}, and this run is on {listed(chosen)}: "
            "choose another model, or correct 'models' in the case"
        )


Mark = Literal["agent", "vacuous"]
"""Why an author excludes a statement: it needs an agent, or every answer satisfies it."""

MARKS: tuple[Mark, ...] = get_args(Mark)

MARK_KEY = "statements"
"""Key of a case that maps the number of a statement, from 1, to its mark."""

_MARKED = f"{MARK_KEY}: every check is marked as agent or vacuous"


def with_marks(case: Case, marks: object) -> Case:
    """Return a case without the statements that its author marked.

    Args:
        case: The case as it was read.
        marks: The value of `MARK_KEY` in the file; what is no object is left alone.

    Raises:
        ValueError: A mark is invalid; the message says how to write one.
    """
    if not isinstance(marks, dict):
        return case
    marked, numbers = _marked(marks, len(case.judge_checks)), count(1)
    kept = tuple(
        check for check in case.checks if not (isinstance(check, Judge) and next(numbers) in marked)
    )
    return replace(case, checks=kept, skip=case.skip or (_MARKED if marked and not kept else None))


def _marked(marks: Mapping[str, Any], total: int) -> set[int]:
    """Return the numbers of the marked statements, of which there are so many."""
    for number, mark in marks.items():
        if mark not in MARKS or not str(number).isdecimal():
            values = " or ".join(map(repr, MARKS))
            raise ValueError(f"{number}: {mark!r} is not a mark: write a number and {values}")
        if not 1 <= int(number) <= total:
            has = counted(total, "statement")
            raise ValueError(f"there is no statement {number}: the case has {has} for a judge")
    return set(map(int, marks))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """The thresholds of a case file's ``gate``; None for the value of the option."""

    min_lift: float | None = None
    """Minimum lift, from -1 to 1."""
    min_mean_pass_rate: float | None = None
    """Minimum mean pass rate of the cases with the skill, from 0 to 1."""
    min_recall: float | None = None
    """Minimum recall of triggers, from 0 to 1."""
    max_false_triggers: float | None = None
    """Maximum rate of false triggers, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenFiles:
    """What is known of the files that no model may see; `hidden_files.py` decides for each file."""

    folder: Path = Path()
    """The skill's own folder."""
    patterns: tuple[str, ...] = ()
    """Patterns of case files that the project lists, such as ``checks/*.json``."""
    answers: frozenset[str] = frozenset()
    """Names, relative to the folder, of the files with which cases compare answers."""
    inputs: frozenset[str] = frozenset()
    """Names of the files that cases give to every arm themselves; they are not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill with its cases."""

    name: str
    description: str = ""
    """What an agent sees before it loads the skill."""
    hidden: bool = False
    """Whether ``disable-model-invocation`` keeps it out of what an agent sees."""
    text: str
    """The ``SKILL.md`` with the files that it names, as the model sees it."""
    case_file: Path
    """The file of its cases; the folder of the suite if they are those of all its files."""
    suite: Path | None = None
    """The folder whose files, of one case each, are measured together; None of other files."""
    cases: tuple[Case, ...]
    folder: Path = Path()
    """Folder of ``SKILL.md``."""
    shares_file: bool = False
    """Whether other skills have cases in the same case file."""
    files: tuple[WorkspaceFile, ...] = ()
    """The files of ``folder``, without cases; read only where an agent is to use them."""
    hidden_files: HiddenFiles = field(default_factory=HiddenFiles)
    """Which files of ``folder`` no model may see."""
    labelled: bool = False
    """Whether a person has labelled answers beside the case file."""
    gate: GateRule = GateRule()
    ref: str = ""
    """The git ref to compare the skill with; "" for none."""
    before: "Skill | None" = None
    """The skill at that ref, if it differs, in what a model sees: its cases are those of now."""
    listed_before: tuple[tuple[str, str], ...] = ()
    """Names and descriptions of the skills that an agent saw at that ref, if they differ."""
    queries_of_gone_skills: tuple[str, ...] = ()
    """Ids of the cases that are skipped as the skill is gone that they expect."""
    history: str = ""
    """Why there is no earlier version to compare with; "" if there is one."""
    past_unknown: bool = False
    """Whether an earlier version may exist, under another name or in an unreadable file."""
    case_changes: str = ""
    """Which cases were removed or changed since, in words; "" for none."""
    other_cases: tuple[str, ...] = ()
    """Ids of the cases that are new or changed in what they ask or expect, if there were others."""
    broken: str = ""
    """The problems of its ``SKILL.md``, one per line, if only other skills of the file can run."""
    read_as: str = ""
    """The tool whose format the case file has; "" where the file's place says so."""
    warnings: tuple[str, ...] = ()
    """What changes the measurement in the skill's files and cases, each ``path:line:column: …``."""
    hints: tuple[str, ...] = ()
    """What does not change it, in the same form."""
