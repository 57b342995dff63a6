"""``generate``: a new skill with its cases, its lift on held-out cases, and proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_upskill import CASE_FILE
from pytest_upskill.answers.workplace import WorkError
from pytest_upskill.formats.skill import Skill
from pytest_upskill.repository.files import write_file
from pytest_upskill.teacher.generation_log import log_generation
from pytest_upskill.teacher.generation_plan import (
    DRAFTS,
    SAVED,
    GenerateSettings,
    bare_skill,
    draft_question,
    generation_parts,
    make_demand,
)
from pytest_upskill.teacher.proof.confirmation import Confirmation, Contest, confirm
from pytest_upskill.teacher.proof.holdout import MIN_HELD_OUT, split_cases
from pytest_upskill.teacher.proof.outcome import NO_EVAL, CommandOutcome, run_and_record
from pytest_upskill.teacher.proposals.keep import keep_cases
from pytest_upskill.teacher.versions.additions import listed_code
from pytest_upskill.teacher.versions.draft import Draft, check_name, read_draft
from pytest_upskill.teacher.versions.search import Task, search, skill_version
from pytest_upskill.teacher.work.drafts import Drafts
from pytest_upskill.teacher.work.engine import Engine
from pytest_upskill.teacher.work.files import display_path, with_cases, with_train_marks
from pytest_upskill.teacher.work.marks import marked_sources
from pytest_upskill.teacher.work.plan import check_models, plan_lines
from pytest_upskill.teacher.work.reply import Refused, complete_text


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
        outcome = confirmed.add_to(replace(outcome, candidates=result.log), _explain(confirmed))
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


def _explain(confirmed: Confirmation) -> str:
    """Return why a new skill is saved or not, in one sentence."""
    if confirmed.acceptance.accepted:
        return f"helps on held-out cases: {confirmed.evidence}"
    worse = ", ".join(confirmed.acceptance.worse)
    return f"{f'hurts {worse}' if worse else 'not shown to help'}: {confirmed.evidence}"
