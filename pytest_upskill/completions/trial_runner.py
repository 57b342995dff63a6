"""The answer of one run: its completion, with the results of compilers and judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_upskill.completions.resources import Host, Resources
from pytest_upskill.completions.source import CompletionRequest, CompletionSource
from pytest_upskill.completions.trigger_runner import TriggerRunner, recorded_choice
from pytest_upskill.grading.grade import Answer, sandboxed_of, statements_of
from pytest_upskill.grading.workspace import with_changes
from pytest_upskill.model import Model
from pytest_upskill.trials.trial import Trial, request

if TYPE_CHECKING:
    from pytest_upskill.completions.builds import Builds

JUDGEMENT = "judgement of "
"""What the subject of a judgement's recording begins with."""

Key = tuple[str, int]
"""Key of a trial and index of the run."""


class TrialRunner:
    """The answers of runs; used on one event loop.

    Args:
        trials: By key.
        hosts: Where each model is served.
        resources: What else it takes.
        source: Who asks the models.
        judge: Judge of the statements about answers; None for no judge.
    """

    def __init__(
        self,
        trials: Mapping[str, Trial],
        hosts: Mapping[Model, Host],
        resources: Resources,
        source: CompletionSource,
        *,
        judge: Model | None,
    ) -> None:
        self._trials = trials
        self._hosts = hosts
        self._cache = resources.cache
        self._bill = resources.bill
        self._source = source
        self._triggers = TriggerRunner(source, resources.bill)
        self._builds_of = _builds_of(trials.values(), resources)
        self._judge = judge

    def recorded(self, key: Key) -> Answer | None:
        """Read the answer of a run if it is recorded and needs neither compiler nor judge.

        Here, not on the loop: a thread that reads files beside one that runs items loses more time
        to Python's interpreter lock than to the files.
        """
        name, run = key
        trial = self._trials[name]
        host = self._hosts[trial.model]
        if not host.recorded or sandboxed_of(trial.case) or statements_of(trial.case):
            return None
        if trial.chooses:
            return recorded_choice(trial, run, lambda asked: self._cache.load(asked, host.url))
        completion = self._cache.load(request(trial, run), host.url)
        return None if completion is None else Answer(completion=completion)

    async def answer(self, key: Key) -> Answer:
        """Return the answer of a run; an error is part of the answer, not raised."""
        name, run = key
        trial = self._trials[name]
        subject = f"{trial.skill.name}::{trial.name} run {run + 1}"
        host = self._hosts[trial.model]
        if trial.chooses:
            return await self._triggers.answer(trial, run, host, subject)
        answer = await self._source.answer(
            CompletionRequest(
                request=request(trial, run),
                host=host,
                subject=subject,
                bill=self._bill.answers,
            )
        )
        if answer.completion is None or answer.is_miss:
            return answer
        if self._builds_of and (sandboxed := sandboxed_of(trial.case)):
            answer = await self._builds_of.answer(trial, sandboxed, answer.completion)
        if self._judge is None or answer.error or not statements_of(trial.case):
            return answer
        return await self._judged(self._judge, trial, answer, subject)

    async def aclose(self) -> None:
        """Kill running compilers and close the connections.

        Raises:
            ExceptionGroup: What clients raised that would not close.
        """
        if self._builds_of:
            self._builds_of.close()
        await self._source.aclose()

    async def _judged(self, judge: Model, trial: Trial, answer: Answer, subject: str) -> Answer:
        """Return the answer with the results of the judge, whose requests are recorded too."""
        # Imported here: most trials have no statements.
        from pytest_upskill.completions.judging import JudgedAnswer, judgement_of

        assert answer.completion is not None
        asked = JudgedAnswer(
            subject=f"{JUDGEMENT}{subject}",
            question=request(trial, run=0).user,
            text=with_changes(answer.completion),
            statements=statements_of(trial.case),
            reference=trial.case.reference,
        )
        said = await judgement_of(
            asked, judge, self._hosts[judge], self._source, self._bill.judgements
        )
        error = said.error
        if said.completion is None and error:
            error = f"judge: {error}"
        return replace(
            answer,
            error=error,
            not_sent=said.not_sent,
            judged=said.results,
            judgement=said.completion,
        )


def _builds_of(trials: Iterable[Trial], resources: Resources) -> Builds | None:
    checks = [check for trial in trials for check in sandboxed_of(trial.case)]
    if not checks:
        return None
    from pytest_upskill.completions.builds import Builds

    return Builds(resources.compilers(), resources.activity, checks)
