"""Estimate what a run will request and what that costs at most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pytest_upskill.completion import Request
from pytest_upskill.grading.grade import statements_of
from pytest_upskill.model import Model
from pytest_upskill.spending.prices import Prices, most_input_tokens
from pytest_upskill.trial import Trial, request

_BYTES_PER_TOKEN = 4
"""What a token of an answer comes to, in prose and code alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEstimate:
    """The requests to one model."""

    model: Model
    requests: int
    most_input_tokens: int
    most_output_tokens: int
    most_usd: float | None
    """Bound in dollars; None where the price of the model is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run will request."""

    trials: int
    runs: int
    """Completions that the trials need."""
    models: tuple[ModelEstimate, ...]
    """Those that are not recorded, by model."""
    judgements: ModelEstimate | None = None
    """What a judge may be asked, recorded or not: that depends on the answers; None for nothing."""

    @property
    def to_send(self) -> int:
        """Completions that must be requested."""
        return sum(share.requests for share in self.models)

    @property
    def recorded(self) -> int:
        """Completions that are recorded."""
        return self.runs - self.to_send

    @property
    def everything(self) -> tuple[ModelEstimate, ...]:
        """The requests to all models, the judge last."""
        return self.models if self.judgements is None else (*self.models, self.judgements)

    @property
    def unpriced(self) -> list[Model]:
        """The models of unknown price, each once."""
        return list(dict.fromkeys(each.model for each in self.everything if each.most_usd is None))


def forecast(
    trials: Iterable[Trial],
    *,
    recorded: Callable[[Request], bool],
    prices: Prices,
    judge: Model | None = None,
) -> Estimate:
    """Return what the trials will request.

    Args:
        trials: Those that will run.
        recorded: Tells whether the answer to a request is at hand.
        prices: Of the models that will be asked.
        judge: Who decides statements about the answers.
    """
    trials = list(trials)
    requests: dict[Model, list[tuple[Request, int]]] = defaultdict(list)
    for trial in trials:
        missing = sum(not recorded(request(trial, run)) for run in range(trial.runs))
        if missing:
            requests[trial.model].append((request(trial, run=0), missing))
    return Estimate(
        trials=len(trials),
        runs=sum(trial.runs for trial in trials),
        models=tuple(_of_model(model, of_model, prices) for model, of_model in requests.items()),
        judgements=_judgements(trials, judge, prices) if judge else None,
    )


def _judgements(trials: Sequence[Trial], judge: Model, prices: Prices) -> ModelEstimate:
    """Return the judge's requests, one for each answer of the greatest length."""
    from pytest_upskill.grading.judge import judge_request

    requests = [
        (
            judge_request(
                judge,
                statements_of(trial.case),
                question=request(trial, run=0).user,
                answer=" " * (_BYTES_PER_TOKEN * trial.max_tokens),
                reference=trial.case.reference,
            ),
            # An unusable judgement is asked for once more.
            2 * trial.runs,
        )
        for trial in trials
        if statements_of(trial.case)
    ]
    return _of_model(judge, requests, prices)


def _of_model(
    model: Model, requests: Sequence[tuple[Request, int]], prices: Prices
) -> ModelEstimate:
    """Return the requests to a model, each with how often it is sent."""
    usd = [(prices.most(asked), times) for asked, times in requests]
    known = [most * times for most, times in usd if most is not None]
    return ModelEstimate(
        model=model,
        requests=sum(times for _, times in requests),
        most_input_tokens=sum(times * most_input_tokens(asked) for asked, times in requests),
        most_output_tokens=sum(times * asked.max_tokens for asked, times in requests),
        most_usd=sum(known) if len(known) == len(usd) else None,
    )
