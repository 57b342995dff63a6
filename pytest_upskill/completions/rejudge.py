"""Judge answers outside a run, from recordings where possible."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_upskill.checks import CheckError, Judge
from pytest_upskill.completions.resources import Host, Resources
from pytest_upskill.completions.source import CompletionRequest, CompletionSource
from pytest_upskill.grading.judge import Reader, judge_request
from pytest_upskill.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """An answer with the statements about it."""

    subject: str
    """Whose answer it is, for messages."""
    question: str
    """The whole message that it answers."""
    text: str
    statements: Sequence[str]
    reference: str


def judge_answers(
    answers: Sequence[JudgedAnswer],
    judge: Model,
    *,
    host: Host,
    resources: Resources,
    concurrency: int,
) -> list[list[bool] | str]:
    """Return what a judge decides of each statement of each answer, or why it did not.

    Args:
        answers: The answers.
        judge: The judge.
        host: Where it is served.
        resources: What requests take.
        concurrency: Requests in flight.
    """
    return asyncio.run(_judge_all(answers, judge, host, resources, concurrency))


async def _judge_all(
    answers: Sequence[JudgedAnswer],
    judge: Model,
    host: Host,
    resources: Resources,
    concurrency: int,
) -> list[list[bool] | str]:
    source = CompletionSource(
        resources, concurrency=concurrency, recording="the same command without --cache replay"
    )

    async def one(answer: JudgedAnswer) -> list[bool] | str:
        statements = [Judge(statement=each) for each in answer.statements]
        reader = Reader(statements, answer.text)
        said = await source.answer(
            CompletionRequest(
                request=judge_request(
                    judge,
                    statements,
                    question=answer.question,
                    answer=answer.text,
                    reference=answer.reference,
                ),
                host=host,
                subject=answer.subject,
                bill=resources.bill.judgements,
                usable=reader.usable,
            )
        )
        if said.completion is None:
            return said.error or said.not_sent
        try:
            return [result.passed for result in reader.results(said.completion)]
        except CheckError as error:
            return str(error)

    try:
        return await asyncio.gather(*map(one, answers))
    finally:
        await source.aclose()
