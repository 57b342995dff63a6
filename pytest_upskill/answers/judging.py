"""Judgements of answers, for the answers of a run and for answers that are already recorded."""

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
class JudgeTask:
    """An answer, and the statements about it that a judge is to decide."""

    subject: str
    """Whose answer it is, for messages and recordings."""
    question: str
    """The user's message, with its files."""
    text: str
    """The answer."""
    statements: Sequence[Judge]
    reference: str
    """A reference answer; "" for none."""


async def judge_answer(
    answer: Answer, task: JudgeTask, judge: Model, source: CompletionSource
) -> Answer:
    """Return an answer with the judge's results, or with the reason why there are none.

    An unusable reply is requested once more.

    Args:
        answer: The answer, to which the results are added.
        task: What the judge is to decide.
        judge: The judge.
        source: The source of the judge's completions.
    """
    reader = Reader(task.statements, task.text)
    request = judge_request(
        judge,
        task.statements,
        question=task.question,
        answer=task.text,
        reference=task.reference,
    )
    reply = await source.answer(request, task.subject, is_usable=reader.usable, judging=True)
    answer = replace(answer, judgement=reply.completion)
    if reply.completion is None:
        return replace(answer, error=reply.error, why_not_sent=reply.why_not_sent)
    try:
        return replace(answer, judged=reader.results(reply.completion))
    except CheckError as error:
        return replace(answer, error=str(error))


def judge_answers(
    tasks: Sequence[JudgeTask], judge: Model, workplace: Workplace
) -> list[list[bool] | str]:
    """Run a judge on answers outside of a run of trials.

    Args:
        tasks: The answers with their statements.
        judge: The judge.
        workplace: The hosts and resources of the session.

    Returns:
        For each task whether each statement holds, or the reason why it was not decided.
    """
    source = CompletionSource(
        workplace.hosts([judge]),
        workplace.resources,
        concurrency=workplace.concurrency,
        record_command="the same command without --cache replay",
    )

    async def judge_one(task: JudgeTask) -> list[bool] | str:
        answer = await judge_answer(Answer(completion=None), task, judge, source)
        if answer.judged is None:
            return answer.error or answer.why_not_sent
        if reasons := [each for each in answer.judged if isinstance(each, str)]:
            return f"judge: a statement cannot be decided: {reasons[0]}"
        return [each.passed for each in answer.judged if not isinstance(each, str)]

    async def judge_all() -> list[list[bool] | str]:
        try:
            return await asyncio.gather(*map(judge_one, tasks))
        finally:
            await source.aclose()

    return asyncio.run(judge_all())
