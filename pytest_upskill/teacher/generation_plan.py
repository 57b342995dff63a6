"""The order of a ``generate`` command, and the most requests that it can take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill import CASE_FILE
from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.teacher.cases import plan_parts
from pytest_upskill.teacher.proof.confirmation import Contest, trials_of_look
from pytest_upskill.teacher.proof.holdout import MIN_HELD_OUT
from pytest_upskill.teacher.proposals.keep import Demand
from pytest_upskill.teacher.proposals.proposals import BATCH
from pytest_upskill.teacher.sources.read import Source, source_of
from pytest_upskill.teacher.versions.draft import MAX_BYTES, draft_prompt
from pytest_upskill.teacher.versions.edits import byte_limit
from pytest_upskill.teacher.versions.search import Task, train_trials
from pytest_upskill.teacher.work.engine import Engine, TeacherError
from pytest_upskill.teacher.work.measure import TRAIN_RUNS, teacher_trial
from pytest_upskill.teacher.work.plan import Part, padded
from pytest_upskill.teacher.work.reply import MAX_TOKENS
from pytest_upskill.teacher.work.terms import Terms
from pytest_upskill.trials.trial import Trial

DRAFTS = 2
"""Attempts at a draft that is not refused."""

SAVED = "saved-SKILL.md"
"""The file in the folder of drafts that is a copy of what was saved."""

_PROMPT_BYTES = 24_000
"""More than a question to the teacher has besides the skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order of a ``generate`` command."""

    task: str
    sources: tuple[Source, ...]
    output: Path | None
    """The skill's folder; None for ``skills/NAME``."""
    measured: bool
    count: int
    """Cases to keep."""
    steps: int
    runs: int
    terms: Terms

    @property
    def name(self) -> str:
        """The name that the skill must have; "" for any."""
        return self.output.absolute().name if self.output else ""

    def folder(self, name: str, drafts: Path) -> Path:
        """Return the folder of a skill with a name.

        Args:
            name: The name.
            drafts: The folder of this command's drafts.

        Raises:
            TeacherError: It exists, and is not what this command has saved there; or cannot exist.
        """
        folder = self.output or Path("skills", name)
        for parent in folder.parents:
            if parent.exists() and not parent.is_dir():
                raise TeacherError(f"{parent}: is not a folder: name another one with --output")
        if folder.exists() and not _same(folder / "SKILL.md", drafts / SAVED):
            raise TeacherError(f"{folder}: exists already: name another folder with --output")
        return folder


def bare_skill(folder: Path, name: str, text: str) -> Skill:
    """Return a skill of one file, which is in no folder yet: it may name files, and gets none.

    Args:
        folder: The folder of drafts, whose files are not the skill's.
        name: Its name.
        text: Its ``SKILL.md``.
    """
    own = folder / "skill"
    return Skill(name=name, text=text, case_file=own / CASE_FILE, cases=(), folder=own)


def demand_of(order: Order, skill: Skill) -> Demand:
    """Return the cases that are wanted for a draft; their author never sees it."""
    return Demand(
        skill=skill,
        task=order.task,
        sources=order.sources or (source_of("task", order.task),),
        teacher=order.terms.teacher,
        students=order.terms.students,
        existing=(),
        count=order.count,
        held_out=MIN_HELD_OUT,
    )


def asking(order: Order, folder: Path, prompt: str, *, run: int = 0) -> Trial:
    """Return a question about the draft to the teacher."""
    skill = bare_skill(folder, order.name or "draft", "")
    return teacher_trial(
        skill, order.terms.teacher, what="draft", prompt=prompt, run=run, max_tokens=MAX_TOKENS
    )


def generation_parts(engine: Engine, order: Order, folder: Path) -> Iterator[Part]:
    """Yield what is asked for at most; draft and questions are as long as they may be."""
    prompt = draft_prompt(order.task, order.sources, name=order.name, refused="x" * 200)
    label = order.terms.teacher.label
    yield Part(what=f"drafts of {label}", trials=(asking(order, folder, prompt),), times=DRAFTS)
    if not order.measured:
        return
    head = "---\nname: draft\ndescription: x\n---\n"
    skill = bare_skill(folder, "draft", head + "x" * (MAX_BYTES - len(head)))
    demand = demand_of(order, skill)
    yield from plan_parts(engine, demand)
    longest, cases = byte_limit(skill.text), demand.rounds * BATCH
    edit = asking(order, folder, "x" * (longest + _PROMPT_BYTES))
    yield Part(what=f"edits of {label}", trials=(edit,), times=order.steps)
    case = Case(id="case", input="x" * 1000, checks=())
    task = Task(
        skill=skill,
        text=skill.text,
        train=(case,),
        holdout=(case,),
        teacher=order.terms.teacher,
        students=order.terms.students,
        steps=order.steps,
    )
    yield Part(
        what=f"versions on train cases, {TRAIN_RUNS} runs each",
        trials=tuple(padded(trial, longest) for trial in train_trials(engine, task, skill.text)),
        times=cases * (order.steps + 1),
    )
    contest = Contest(
        new=skill, old=None, cases=(case,), students=order.terms.students, runs=order.runs
    )
    new, old = trials_of_look(engine, contest, 1)
    yield Part(
        what="with and without the skill on the hold-out",
        trials=(*(padded(trial, longest) for trial in new), *old),
        times=cases,
    )


def _same(file: Path, other: Path) -> bool:
    """Return whether two files exist and are equal."""
    try:
        return file.read_bytes() == other.read_bytes()
    except OSError:
        return False
