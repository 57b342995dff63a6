"""Judgements of answers, for the answers of a run and for answers that are already recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_upskill.answers.resources import Workplace
from pytest_upskill.answers.source import CompletionSource
from pytest_upskill.checks import CheckError
from pytest_upskill.checks.judge import GIVEN_UP, MOST_UNUSABLE, Judge, meaning_of
from pytest_upskill.grading.grade import Answer
from pytest_upskill.grading.judge import Reader, judge_request
from pytest_upskill.models import Model


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


class Judgements:
    """Asks a judge about answers, until it gives nothing usable three times in a row.

    Used on one event loop. Before its first usable judgement, no more answers are with the judge at
    a time than it may fail at.

    Args:
        judge: The judge.
        source: The source of its completions.
    """

    def __init__(self, judge: Model, source: CompletionSource) -> None:
        self._judge = judge
        self._source = source
        # In a batch, all judgements are requested together.
        self._works = source.uses_batches
        self._unusable = 0
        """Number of answers in a row without a usable judgement."""
        self._given_up = ""
        self._asking = 0
        self._changed = asyncio.Condition()

    async def judge(self, answer: Answer, task: JudgeTask) -> Answer:
        """Return an answer with the judge's results, or with the reason why there are none.

        Args:
            answer: The answer, to which the results are added.
            task: What the judge is to decide.
        """
        async with self._changed:
            await self._changed.wait_for(self._may_ask)
            self._asking += 1
        try:
            return await self._ask(answer, task)
        finally:
            async with self._changed:
                self._asking -= 1
                self._changed.notify_all()

    def _may_ask(self) -> bool:
        settled = self._works or bool(self._given_up)
        return settled or self._asking + self._unusable < MOST_UNUSABLE

    async def _ask(self, answer: Answer, task: JudgeTask) -> Answer:
        """Request a judgement, once more if it is unusable."""
        reader = Reader(task.statements, task.text)
        request = judge_request(
            self._judge,
            task.statements,
            question=task.question,
            answer=task.text,
            reference=task.reference,
        )
        if self._given_up and self._source.load_recorded(request) is None:
            return replace(answer, error=self._given_up)
        reply = await self._source.answer(
            request, task.subject, is_usable=reader.usable, judging=True
        )
        answer = replace(answer, judgement=reply.completion)
        if reply.completion is None:
            return replace(answer, error=reply.error, why_not_sent=reply.why_not_sent)
        try:
            judged = reader.results(reply.completion)
        except CheckError as error:
            self._unusable += 1
            if self._unusable >= MOST_UNUSABLE:
                self._given_up = f"{GIVEN_UP}{meaning_of(str(error))}"
            return replace(answer, error=str(error))
        self._works, self._unusable = True, 0
        return replace(answer, judged=judged)


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

    judgements = Judgements(judge, source)

    async def judge_one(task: JudgeTask) -> list[bool] | str:
        answer = await judgements.judge(Answer(completion=None), task)
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
