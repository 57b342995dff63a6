"""Judgements of the answers of a run."""

from __future__ import annotations

from dataclasses import replace

from pytest_upskill.answers.source import CompletionSource
from pytest_upskill.checks import CheckError
from pytest_upskill.checks.judge import GIVEN_UP, MOST_UNUSABLE, cause_of
from pytest_upskill.grading.grade import Answer, with_changes
from pytest_upskill.grading.judge import judge_request, read_judgement
from pytest_upskill.models import Completion, Model
from pytest_upskill.trials.trial import Trial, request


class Judgements:
    """Asks a judge about answers, until it gives nothing usable three times in a row.

    Used on one event loop.

    Args:
        judge: The judge.
        source: The source of its completions.
    """

    def __init__(self, judge: Model, source: CompletionSource) -> None:
        self._judge = judge
        self._source = source
        self._unusable = 0
        """Number of answers in a row without a usable judgement."""
        self._given_up = ""

    async def judge(self, trial: Trial, answer: Answer, subject: str) -> Answer:
        """Return an answer with the judge's results, or with the reason why there are none.

        A judgement is requested once more if it is unusable.

        Args:
            trial: Has the statements.
            answer: The answer, to which the results are added.
            subject: What is asked for, in messages and recordings.
        """
        assert answer.completion is not None
        statements, text = trial.case.judge_checks, with_changes(answer.completion)

        def is_usable(reply: Completion) -> bool:
            try:
                return bool(read_judgement(reply, statements, text))
            except CheckError:
                return False

        asked = judge_request(
            self._judge,
            statements,
            question=request(trial, run=0).user,
            answer=text,
            reference=trial.case.reference,
        )
        if self._given_up and self._source.load_recorded(asked) is None:
            return replace(answer, error=f"judge: {self._given_up}")
        reply = await self._source.answer(asked, subject, is_usable=is_usable, judging=True)
        if reply.completion is None:
            error = reply.error and f"judge: {reply.error}"
            return replace(answer, error=error, why_not_sent=reply.why_not_sent)
        answer = replace(answer, judgement=reply.completion)
        try:
            judged = read_judgement(reply.completion, statements, text)
        except CheckError as error:
            self._unusable += 1
            if self._unusable >= MOST_UNUSABLE:
                self._given_up = f"{GIVEN_UP}{cause_of(str(error))}"
            return replace(answer, error=str(error))
        self._unusable = 0
        return replace(answer, judged=judged)
