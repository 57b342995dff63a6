"""What a judge decides of the statements about answers, from recordings where possible."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_upskill.answers.source import CompletionSource
from pytest_upskill.answers.workplace import Workplace
from pytest_upskill.checks import CheckError, Judge
from pytest_upskill.grading.grade import Answer
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


async def judge_answer(
    answer: Answer, judged_answer: JudgedAnswer, judge: Model, source: CompletionSource
) -> Answer:
    """Return an answer with what a judge decides, or why it decides nothing.

    The judge is asked once more if its reply cannot be used.

    Args:
        answer: The answer, to which the results are added.
        judged_answer: What the judge is shown of it.
        judge: The judge.
        source: Sends the request, unless it is recorded.
    """
    reader = Reader(judged_answer.statements, judged_answer.text)
    request = judge_request(
        judge,
        judged_answer.statements,
        question=judged_answer.question,
        answer=judged_answer.text,
        reference=judged_answer.reference,
    )
    reply = await source.answer(request, judged_answer.subject, usable=reader.usable, judging=True)
    answer = replace(answer, judgement=reply.completion)
    if reply.completion is None:
        return replace(answer, error=reply.error, why_not_sent=reply.why_not_sent)
    try:
        return replace(answer, judged=reader.results(reply.completion))
    except CheckError as error:
        return replace(answer, error=str(error))


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

    async def judge_one(judged_answer: JudgedAnswer) -> list[bool] | str:
        reply = await judge_answer(Answer(completion=None), judged_answer, judge, source)
        if reply.judged is None:
            return reply.error or reply.why_not_sent
        return [result.passed for result in reply.judged]

    async def judge_all() -> list[list[bool] | str]:
        try:
            return await asyncio.gather(*map(judge_one, answers))
        finally:
            await source.aclose()

    return asyncio.run(judge_all())
