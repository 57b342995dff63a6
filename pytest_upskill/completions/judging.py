"""What a judge decides of the statements about answers, from recordings where possible."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_upskill.checks import CheckError, CheckResult, Judge
from pytest_upskill.completion import Completion
from pytest_upskill.completions.source import CompletionSource
from pytest_upskill.completions.workplace import Workplace
from pytest_upskill.grading.judge import Reader, judge_request
from pytest_upskill.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """An answer with the statements about it."""

    subject: str
    """Whose answer it is, for messages and recordings."""
    question: str
    """The whole message that it answers."""
    text: str
    statements: Sequence[Judge]
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The decision about each statement, or why there is none."""

    results: tuple[CheckResult, ...] | None = None
    error: str = ""
    not_sent: str = ""
    """Why the judge was not asked; empty if it was."""
    completion: Completion | None = None
    """The judge's reply."""


async def judgement_of(answer: JudgedAnswer, judge: Model, source: CompletionSource) -> Judgement:
    """Ask a judge about an answer, and once more if the reply cannot be used.

    Args:
        answer: The answer.
        judge: The judge.
        source: Sends the request, unless it is recorded.
    """
    reader = Reader(answer.statements, answer.text)
    asked = judge_request(
        judge,
        answer.statements,
        question=answer.question,
        answer=answer.text,
        reference=answer.reference,
    )
    said = await source.answer(asked, answer.subject, usable=reader.usable, judging=True)
    if said.completion is None:
        return Judgement(error=said.error, not_sent=said.not_sent)
    try:
        return Judgement(results=reader.results(said.completion), completion=said.completion)
    except CheckError as error:
        return Judgement(error=str(error), completion=said.completion)


def judge_answers(
    answers: Sequence[JudgedAnswer], judge: Model, workplace: Workplace
) -> list[list[bool] | str]:
    """Return what a judge decides of each statement of each answer, outside of a run.

    Where it decided nothing, the reason stands in the place of the decisions.

    Args:
        answers: The answers.
        judge: The judge.
        workplace: What requests take.
    """
    source = CompletionSource(
        workplace.hosts([judge]),
        workplace.resources,
        concurrency=workplace.concurrency,
        record_command="the same command without --cache replay",
    )

    async def one(answer: JudgedAnswer) -> list[bool] | str:
        said = await judgement_of(answer, judge, source)
        if said.results is None:
            return said.error or said.not_sent
        return [result.passed for result in said.results]

    async def judge_all() -> list[list[bool] | str]:
        try:
            return await asyncio.gather(*map(one, answers))
        finally:
            await source.aclose()

    return asyncio.run(judge_all())
