"""A new skill: questions to its author, the teacher's draft, and the folder it goes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from pytest_upskill import CASE_FILE
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Skill
from pytest_upskill.cases.skill_files import read_bundle
from pytest_upskill.cases.skill_text import read_skill_text
from pytest_upskill.teacher.engine import (
    Engine,
    Part,
    Refused,
    complete_text,
    read_json_reply,
    validate_as,
)
from pytest_upskill.teacher.files import SAVED, Drafts
from pytest_upskill.teacher.sources import Source, marked_sources, prompt, source_of
from pytest_upskill.teacher.versions import (
    MAX_SKILL_TOKENS,
    Wishes,
    check_name,
    read_draft,
)
from pytest_upskill.trials.trial import Trial

_DRAFTS = 2
"""How often a draft is asked for until one is accepted."""

_INTERVIEW = "interview.md"
_MOST_QUESTIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Questions:
    questions: Annotated[tuple[str, ...], Field(max_length=_MOST_QUESTIONS)]


_QUESTIONS = TypeAdapter(_Questions)


@dataclass(frozen=True, slots=True)
class NewSkill:
    """A skill to be written."""

    wishes: Wishes
    output: Path | None
    """Its folder; None for ``skills/NAME``."""

    @property
    def name(self) -> str:
        """The name that it must have; "" for any."""
        return self.output.absolute().name if self.output else ""

    def check_output(self, drafts: Drafts) -> None:
        """Check that the skill can be saved.

        Raises:
            WorkError: It cannot, as `folder` says, or a skill cannot have the name.
        """
        if self.output:
            check_name(self.name)
            self.folder(self.name, drafts)

    def folder(self, name: str, drafts: Drafts) -> Path:
        """Return the folder of the skill, given its name.

        Raises:
            WorkError: It exists and was not saved by this command, or a file is in its way.
        """
        folder = self.output or Path("skills", name)
        for parent in folder.parents:
            if parent.exists() and not parent.is_dir():
                raise WorkError(f"{parent}: is not a folder: name another one with --output")
        if folder.exists() and not drafts.has(SAVED, folder / "SKILL.md"):
            raise WorkError(
                f"{folder}: exists already: --from {folder} improves it, --output names another one"
            )
        return folder

    def longest(self) -> Skill:
        """Return a skill of the greatest length, to bound the cost of the command."""
        text = "---\nname: draft\ndescription: x\n---\n" + "x" * (4 * MAX_SKILL_TOKENS)
        return Skill(name=self.name or "draft", text=text, case_file=Path(CASE_FILE), cases=())


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDraft:
    """A draft in a folder of the command's drafts."""

    skill: Skill
    text: str
    """The ``SKILL.md``."""
    sources: Sequence[Source]
    """What it was written from: the sources, or the author's answers."""


def draft_parts(engine: Engine, new: NewSkill) -> Iterator[Part]:
    """Yield the most requests of `request_draft`, and their purposes."""
    label = engine.terms.teacher.label
    if _is_asked(engine, new):
        yield Part(f"questions of {label} to you", engine.with_retry(_interview(engine, new)))
    answers = [source_of("answers", "x" * 6000)] if _is_asked(engine, new) else ()
    question = _question(engine, new, new.wishes.sources or answers, refused="x" * 200)
    yield Part(f"drafts of {label}", engine.with_retry(question), _DRAFTS)


def request_draft(engine: Engine, new: NewSkill, drafts: Drafts) -> WrittenDraft:
    """Ask for a draft, again if it is refused, and write it.

    Raises:
        Refused: The last attempt was refused too.
        Stopped: An answer is missing, or a limit would be passed.
    """
    sources = new.wishes.sources or _answers_of_author(engine, new, drafts)
    known, refused = replace(new.wishes, sources=sources).known, ""
    for attempt in range(_DRAFTS):
        question = _question(engine, new, sources, refused=refused, run=attempt)
        reply = engine.ask(question, "draft")
        drafts.write(f"draft-{attempt + 1}-reply.md", reply.text)
        try:
            draft = read_draft(complete_text(reply), known, name=new.name)
            new.folder(draft.name, drafts)
        except (Refused, WorkError) as reason:
            refused = str(reason)
            engine.say(f"draft {attempt + 1}: refused: {refused}")
            continue
        engine.say(f"draft: {draft.name}")
        # The folder of drafts itself holds files that are not the skill's.
        file = drafts.write("skill/SKILL.md", draft.text)
        for path, text in draft.references.items():
            drafts.write(f"skill/{path}", text)
        skill = Skill(
            name=draft.name,
            text=draft.text,
            case_file=file.parent / CASE_FILE,
            cases=(),
            folder=file.parent,
        )
        read = read_skill_text(draft.text, folder="")
        bundle = read_bundle(skill.folder, read, skill.hidden_files)
        skill = replace(skill, text=bundle.text, description=read.description)
        return WrittenDraft(skill=skill, text=draft.text, sources=sources)
    raise Refused(f"no usable draft: {refused}")


def _question(
    engine: Engine, new: NewSkill, sources: Sequence[Source], *, refused: str, run: int = 0
) -> Trial:
    asked = prompt(
        "draft",
        task=new.wishes.task,
        name=new.name,
        limit=f"{MAX_SKILL_TOKENS:,}",
        sources=marked_sources(sources),
        refused=refused,
    )
    return engine.question(new.longest(), "draft", asked, run=run)


def _is_asked(engine: Engine, new: NewSkill) -> bool:
    """Return whether the author is asked: there is no source, but somebody at a terminal."""
    consent = engine.terms.consent
    return not new.wishes.sources and consent.terminal is not None and not consent.yes


def _interview(engine: Engine, new: NewSkill) -> Trial:
    return engine.question(new.longest(), "interview", prompt("interview", task=new.wishes.task))


def _answers_of_author(engine: Engine, new: NewSkill, drafts: Drafts) -> list[Source]:
    """Ask the author the teacher's questions, or read what was answered before, as a source."""
    if not _is_asked(engine, new):
        return []
    if not (answers := drafts.read(_INTERVIEW)):
        reply = engine.ask(_interview(engine, new), "questions")
        try:
            read = validate_as(_QUESTIONS, read_json_reply(complete_text(reply)), "questions")
        except Refused:
            return []
        asked = [(each, engine.terms.consent.ask_text(each)) for each in read.questions]
        answers = "\n\n".join(f"## {question}\n\n{answer}" for question, answer in asked if answer)
        drafts.write(_INTERVIEW, answers)
    return [source_of("the author's answers", answers)] if answers.strip() else []
