"""A new skill: questions to its author, and the teacher's draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from pytest_upskill import CASE_FILE
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Skill
from pytest_upskill.teacher.engine import Engine, Refused, complete_text, read_list
from pytest_upskill.teacher.files import Drafts
from pytest_upskill.teacher.sources import Source, marked_sources, prompt, source_of
from pytest_upskill.teacher.versions import MAX_SKILL_TOKENS, Settings, read_draft
from pytest_upskill.trials.trial import Trial

DRAFTS = 2
"""How often a draft is asked for until one is accepted."""

_INTERVIEW = "interview.md"
_Questions = Annotated[list[str], Field(max_length=3)]


def request_draft(
    engine: Engine, settings: Settings, drafts: Drafts
) -> tuple[Skill, Sequence[Source]]:
    """Ask for a draft, again if it is refused, and write it into the command's drafts.

    Returns:
        The skill, and what it was written from: the sources, or the author's answers.

    Raises:
        Refused: The last attempt was refused too.
        Stopped: An answer is missing, or a limit would be passed.
    """
    if is_author_asked(engine, settings):
        settings = replace(settings, sources=_answers_of_author(engine, settings, drafts))
    refused = ""
    for attempt in range(DRAFTS):
        question = _question(engine, settings, refused=refused, run=attempt)
        reply = engine.ask(question, "draft")
        drafts.write(f"draft-{attempt + 1}-reply.md", reply.text)
        try:
            draft, references = read_draft(complete_text(reply), settings.known, name=settings.name)
            settings.new_folder(draft.name)
        except (Refused, WorkError) as reason:
            refused = str(reason)
            engine.say(f"draft {attempt + 1}: refused: {refused}")
            continue
        engine.say(f"draft: {draft.name}")
        # The folder of drafts itself holds files that are not the skill's.
        folder = drafts.write("skill/SKILL.md", draft.text).parent
        for path, text in references.items():
            drafts.write(f"skill/{path}", text)
        skill = Skill(
            name=draft.name,
            description=draft.description,
            text=draft.text,
            case_file=folder / CASE_FILE,
            cases=(),
            folder=folder,
        )
        return skill, settings.sources
    raise Refused(f"no usable draft: {refused}")


def _question(engine: Engine, settings: Settings, *, refused: str, run: int) -> Trial:
    asked = prompt(
        "draft",
        task=settings.task,
        name=settings.name,
        limit=f"{MAX_SKILL_TOKENS:,}",
        sources=marked_sources(settings.sources),
        refused=refused,
    )
    return engine.question(settings.longest_skill(), "draft", asked, run=run)


def is_author_asked(engine: Engine, settings: Settings) -> bool:
    """Return whether the author is asked: there is no source, but somebody at a terminal."""
    consent = engine.consent
    return not settings.sources and consent.terminal is not None and not consent.yes


def _interview(engine: Engine, settings: Settings) -> Trial:
    asked = prompt("interview", task=settings.task)
    return engine.question(settings.longest_skill(), "interview", asked)


def _answers_of_author(engine: Engine, settings: Settings, drafts: Drafts) -> list[Source]:
    """Ask the author the teacher's questions, or read what was answered before, as a source."""
    if not (answers := drafts.read(_INTERVIEW)):
        reply = engine.ask(_interview(engine, settings), "questions")
        try:
            questions = read_list(complete_text(reply), "questions", _Questions)
        except Refused:
            return []
        asked = [(each, engine.consent.ask_text(each)) for each in questions]
        answers = "\n\n".join(f"## {question}\n\n{answer}" for question, answer in asked if answer)
        drafts.write(_INTERVIEW, answers)
    return [source_of("the author's answers", answers)] if answers.strip() else []
