"""The settings of a ``generate`` command, and the most requests that it can make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_upskill import CASE_FILE
from pytest_upskill.answers.workplace import WorkError
from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.repository.files import MAX_TEXT_BYTES, read_file
from pytest_upskill.teacher.proof.confirmation import Contest, look_trials
from pytest_upskill.teacher.proof.holdout import MIN_HELD_OUT
from pytest_upskill.teacher.proposals.keep import Demand, plan_parts
from pytest_upskill.teacher.proposals.proposals import BATCH
from pytest_upskill.teacher.sources.read import Source, source_of
from pytest_upskill.teacher.versions.draft import MAX_BYTES, draft_prompt
from pytest_upskill.teacher.versions.edits import byte_limit
from pytest_upskill.teacher.versions.search import TRAIN_RUNS, Task, longest_question, train_trials
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.plan import Part, pad_skill_block
from pytest_upskill.trials.trial import Trial

DRAFTS = 2
"""How often a draft is asked for until one is accepted."""

SAVED = "saved-SKILL.md"
"""The file in the folder of drafts that is a copy of what was saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateSettings:
    """The settings of a ``generate`` command."""

    task: str
    sources: Sequence[Source]
    output: Path | None
    """The skill's folder; None for ``skills/NAME``."""
    count: int
    """Cases to keep."""
    steps: int
    runs: int

    @property
    def name(self) -> str:
        """The name that the skill must have; "" for any."""
        return self.output.absolute().name if self.output else ""

    def folder(self, name: str, drafts: Path) -> Path:
        """Return the folder of a skill with a name.

        Args:
            name: Name of the skill.
            drafts: The folder of this command's drafts.

        Raises:
            WorkError: It exists and was not saved by this command, or a file is in its way.
        """
        folder = self.output or Path("skills", name)
        for parent in folder.parents:
            if parent.exists() and not parent.is_dir():
                raise WorkError(f"{parent}: is not a folder: name another one with --output")
        if folder.exists() and not _have_same_content(folder / "SKILL.md", drafts / SAVED):
            raise WorkError(f"{folder}: exists already: name another folder with --output")
        return folder


def bare_skill(folder: Path, name: str, text: str) -> Skill:
    """Return a skill that is only a text so far, without a folder and other files.

    Args:
        folder: The folder of drafts, whose files are not the skill's.
        name: Its name.
        text: Its ``SKILL.md``.
    """
    own = folder / "skill"
    return Skill(name=name, text=text, case_file=own / CASE_FILE, cases=(), folder=own)


def make_demand(settings: GenerateSettings, skill: Skill) -> Demand:
    """Return which cases to propose for a draft; the request never shows the draft."""
    return Demand(
        skill=skill,
        task=settings.task,
        sources=settings.sources or [source_of("task", settings.task)],
        count=settings.count,
        held_out=MIN_HELD_OUT,
    )


def draft_question(
    engine: Engine, settings: GenerateSettings, folder: Path, *, refused: str, run: int = 0
) -> Trial:
    """Return the question for a draft; ``refused`` is why the last one was refused, or ""."""
    prompt = draft_prompt(settings.task, settings.sources, name=settings.name, refused=refused)
    skill = bare_skill(folder, settings.name or "draft", "")
    return engine.question(skill, "draft", prompt, run=run)


def generation_parts(engine: Engine, settings: GenerateSettings, folder: Path) -> Iterator[Part]:
    """Yield the most requests, each with a draft and questions of the maximum length."""
    label, steps = engine.terms.teacher.label, settings.steps
    yield Part(
        f"drafts of {label}", [draft_question(engine, settings, folder, refused="x" * 200)], DRAFTS
    )
    if not engine.terms.students:
        return
    head = "---\nname: draft\ndescription: x\n---\n"
    skill = bare_skill(folder, "draft", head + "x" * (MAX_BYTES - len(head)))
    demand = make_demand(settings, skill)
    yield from plan_parts(engine, demand)
    longest, cases = byte_limit(skill.text), demand.rounds * BATCH
    case = Case(id="case", input="x" * 1000, checks=())
    task = Task(skill=skill, text=skill.text, train=[case], holdout=[case], steps=steps)
    train = [pad_skill_block(trial, longest) for trial in train_trials(engine, task, skill.text)]
    contest = Contest(new=skill, old=None, cases=[case], runs=settings.runs)
    new, old = look_trials(engine, contest, 1)
    both = [*(pad_skill_block(trial, longest) for trial in new), *old]
    yield Part(f"edits of {label}", [longest_question(engine, task)], steps)
    yield Part(f"versions on train cases, {TRAIN_RUNS} runs each", train, cases * (steps + 1))
    yield Part("with and without the skill on the hold-out", both, cases)


def _have_same_content(file: Path, other: Path) -> bool:
    """Return whether two files exist and are equal."""
    try:
        return read_file(file, MAX_TEXT_BYTES) == read_file(other, MAX_TEXT_BYTES)
    except OSError:
        return False
