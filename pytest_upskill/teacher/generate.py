"""``generate``: a new skill with its cases, its lift on held-out cases, and proof."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_upskill import CASE_FILE
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Case, GateRule, Skill
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import Gate
from pytest_upskill.project.files import MAX_TEXT_BYTES, read_file, write_file
from pytest_upskill.project.git import revision
from pytest_upskill.project.project import RUNS
from pytest_upskill.report.document import Report, Session
from pytest_upskill.report.history.runs import log_run
from pytest_upskill.teacher.additions import listed_code
from pytest_upskill.teacher.cases import Demand, keep_cases, plan_parts
from pytest_upskill.teacher.confirmation import Confirmation, Contest, confirm, look_trials
from pytest_upskill.teacher.engine import (
    Engine,
    Part,
    Refused,
    check_models,
    complete_text,
    pad_skill_block,
    plan_lines,
)
from pytest_upskill.teacher.files import Drafts, display_path, with_cases, with_train_marks
from pytest_upskill.teacher.holdout import MIN_HELD_OUT, split_cases
from pytest_upskill.teacher.outcome import NO_EVAL, CommandOutcome, run_and_record
from pytest_upskill.teacher.proposals import BATCH
from pytest_upskill.teacher.search import (
    TRAIN_RUNS,
    Task,
    longest_question,
    search,
    skill_version,
    train_trials,
)
from pytest_upskill.teacher.sources import Source, marked_sources, source_of
from pytest_upskill.teacher.versions import (
    MAX_BYTES,
    Draft,
    byte_limit,
    check_name,
    draft_prompt,
    read_draft,
)
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


def log_generation(engine: Engine, confirmed: Confirmation, folder: Path, name: str) -> None:
    """Write the confirmation of a saved skill into the history; say so if that is impossible.

    Args:
        engine: Knows the project and prints messages.
        confirmed: The measurement on held-out cases.
        folder: The saved skill.
        name: Its name.
    """
    state = engine.terms.state
    project = state.parent
    path = Path(os.path.relpath(folder / CASE_FILE, project)).as_posix()
    models = {result.model: result.resolved for result in confirmed.results}
    gates = []
    for label, resolved in models.items():
        trials = tuple(result for result in confirmed.results if result.model == label)
        cell = Cell(
            path=path,
            skill=name,
            model=label,
            resolved=resolved,
            gate=GateRule(),
            planned=len(trials),
            trials=trials,
        )
        gates.append(Gate(cell=cell, outcome="passed", text=f"{cell.name}: {cell.lift.verdict}"))
    session = Session(
        date=datetime.now(UTC).replace(microsecond=0),
        versions={"pytest-upskill": version("pytest-upskill"), "python": platform.python_version()},
        models=models,
        options={"command": "generate", "look": confirmed.look},
        sandbox=None,
        complete=True,
        revision=revision(project, [folder]),
    )
    try:
        log_run(Report(sessions=(session,), gates=tuple(gates)), state / RUNS)
    except OSError as error:
        engine.say(f"not in the history: {state / RUNS}: {error.strerror}")


def generate(engine: Engine, settings: GenerateSettings) -> CommandOutcome:
    """Write a skill and its cases, measure it, and save it if it helps; write ``decision.json``.

    Raises:
        WorkError: The command cannot run as it was given.
    """
    terms = engine.terms
    given = (settings.task, *terms.names, *(source.text for source in settings.sources))
    drafts = terms.drafts(settings.name, "generate", *given)
    if settings.output:
        check_name(settings.name)
        settings.folder(settings.name, drafts.folder)
    check_models(engine)
    terms.check_sources(settings.sources, drafts, engine.say)
    plan = plan_lines(engine, *generation_parts(engine, settings, drafts.folder))
    start = CommandOutcome(command="generate", skill=settings.name)
    return run_and_record(engine, drafts, start, plan, _Generation(engine, settings, drafts).run)


@dataclass(frozen=True, slots=True)
class _Generation:
    """One run of ``generate``."""

    engine: Engine
    settings: GenerateSettings
    drafts: Drafts

    def run(self, outcome: CommandOutcome) -> CommandOutcome:
        """Write a draft and cases, choose and prove a version, and save it if it helps."""
        say = self.engine.say
        try:
            draft = self._request_draft()
            outcome = replace(outcome, skill=draft.name)
            folder = self.settings.folder(draft.name, self.drafts.folder)
        except (Refused, WorkError) as error:
            say(str(error))
            return replace(outcome, decision="refused", reason=str(error))
        self.drafts.write("SKILL.md", draft.text)
        say(f"draft: {draft.name}, {len(draft.text.encode()) // 4:,} tokens")
        if not self.engine.terms.students:  # --no-eval
            self._save(folder, draft.text)
            return replace(outcome, decision="not shown", reason=NO_EVAL, applied=True)
        skill = bare_skill(self.drafts.folder, draft.name, draft.text)
        kept = keep_cases(self.engine, make_demand(self.settings, skill))
        case_file = with_cases(None, kept.entries)
        say(*kept.summary_lines())
        self.drafts.write(CASE_FILE, case_file.decode())
        outcome = outcome.with_cases(kept.cases, kept.dropped)
        return self._confirm_best(
            replace(skill, cases=tuple(kept.cases)), case_file, folder, outcome
        )

    def _request_draft(self) -> Draft:
        """Ask for a draft, again if it is refused.

        Raises:
            Refused: The last attempt was refused too.
        """
        settings, refused = self.settings, ""
        known = f"{settings.task}\n{marked_sources(settings.sources)}"
        for attempt in range(DRAFTS):
            question = draft_question(
                self.engine, settings, self.drafts.folder, refused=refused, run=attempt
            )
            reply = self.engine.ask(question, "draft")
            self.drafts.write(f"draft-{attempt + 1}-reply.md", reply.text)
            try:
                return read_draft(complete_text(reply), known, name=settings.name)
            except Refused as reason:
                refused = str(reason)
                self.engine.say(f"draft {attempt + 1}: refused: {refused}")
        raise Refused(f"no usable draft: {refused}")

    def _confirm_best(
        self, skill: Skill, case_file: bytes, folder: Path, outcome: CommandOutcome
    ) -> CommandOutcome:
        """Choose a version on train cases, and measure its lift on the others."""
        engine, settings = self.engine, self.settings
        train, holdout = split_cases(skill.cases)
        if len(holdout) < MIN_HELD_OUT or not train:
            reason = (
                f"only {len(holdout)} of {len(skill.cases)} cases are held out, and a decision "
                f"takes {MIN_HELD_OUT}: give more sources, or keep more cases with --count"
            )
            engine.say(reason)
            return replace(outcome, decision="not shown", reason=reason)
        task = Task(
            skill=skill, text=skill.text, train=train, holdout=holdout, steps=settings.steps
        )
        result = search(engine, task, self.drafts)
        best = result.best.text
        self.drafts.write("SKILL.md", best)
        contest = Contest(
            new=skill_version(skill, best), old=None, cases=holdout, runs=settings.runs
        )
        confirmed = confirm(engine, contest)
        outcome = confirmed.add_to(replace(outcome, candidates=result.log))
        if outcome.decision != "accepted":
            engine.say(
                f"{outcome.reason}: not saved, the draft stays in "
                f"{display_path(self.drafts.folder)}"
            )
            return outcome
        if self._save(folder, best, with_train_marks(case_file, outcome.train)):
            log_generation(engine, confirmed, folder, skill.name)
        return replace(outcome, applied=True)

    def _save(self, folder: Path, text: str, case_file: bytes = b"") -> bool:
        """Write the skill's folder in one step, and return whether it is new.

        If the folder exists, an earlier run of the same command wrote it.
        """
        is_new = not folder.exists()
        self.engine.say(*listed_code(text))
        try:
            if is_new:
                self.drafts.write(SAVED, text)
                folder.parent.mkdir(parents=True, exist_ok=True)
                with TemporaryDirectory(prefix=".", dir=folder.parent) as parent:
                    new = Path(parent, folder.name)
                    write_file(new / "SKILL.md", text.encode(), mode=0o666)
                    if case_file:
                        write_file(new / CASE_FILE, case_file, mode=0o666)
                    new.rename(folder)
        except OSError as error:
            raise WorkError(f"{folder}: cannot be written: {error.strerror}") from None
        self.engine.say(f"Saved to {folder if folder.is_absolute() else f'./{folder}'}")
        return is_new
