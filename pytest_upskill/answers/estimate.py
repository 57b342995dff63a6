"""The forecast before a run: what it will request, and what that costs at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from pytest_upskill.answers.cache import AgentRuns, Cache
from pytest_upskill.answers.prices import (
    BYTES_PER_TOKEN,
    Prices,
    max_input_tokens,
    max_output_tokens,
)
from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.answers.trial_runner import Load, recorded_steps
from pytest_upskill.models import Completion, Model, Request
from pytest_upskill.trials.conversation import longest_requests, probe
from pytest_upskill.trials.trial import Trial, request


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEstimate:
    """The answers to request from one model, and what they cost."""

    model: Model
    answers: int
    """Answers to request; one of a trigger trial takes up to three requests."""
    max_input_tokens: int
    max_output_tokens: int
    max_usd: float | None
    """Maximum cost in dollars; None if the price of the model is unknown."""
    likely_usd: float | None = None
    """Likely cost in dollars, by the mean of recorded runs of the agent; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostForecast:
    """The answers that a run needs, and what those cost that it must request."""

    trials: int
    runs: int
    """Answers that the trials need."""
    models: tuple[ModelEstimate, ...]
    """The answers that are not recorded, by model."""
    judgements: ModelEstimate | None = None
    """All requests to the judge, recorded or not, as they depend on the answers; None for none."""

    @property
    def to_send(self) -> int:
        """Answers that must be requested."""
        return sum(estimate.answers for estimate in self.models)

    @property
    def recorded(self) -> int:
        """Answers that are recorded."""
        return self.runs - self.to_send

    @property
    def all_models(self) -> tuple[ModelEstimate, ...]:
        """The requests to all models, the judge last."""
        return self.models if self.judgements is None else (*self.models, self.judgements)

    @property
    def unpriced(self) -> list[Model]:
        """The models of unknown price, each once."""
        unpriced = (estimate.model for estimate in self.all_models if estimate.max_usd is None)
        return list(dict.fromkeys(unpriced))


class _Missing(NamedTuple):
    """Equally long answers that are not recorded."""

    requests: tuple[Request, ...]
    """The requests for one answer, as many as it can take."""
    times: int
    """Number of such answers."""
    is_answer: bool = True
    """Whether they are answers to trials, and counted as such; those to a probe only cost money."""


def forecast(
    trials: Iterable[Trial],
    hosts: Mapping[Model, Host],
    resources: Resources,
    *,
    judge: Model | None = None,
) -> CostForecast:
    """Return what the trials will request.

    Args:
        trials: Those that will run.
        hosts: The host of each model.
        resources: The recordings, and the prices of the models.
        judge: The model that decides statements about the answers; None for no judge.
    """
    trials, cache, prices = list(trials), resources.cache, resources.prices
    by_model: dict[Model, list[Trial]] = {}
    for trial in trials:
        by_model.setdefault(trial.model, []).append(trial)
    estimates = []
    for model, trials_of_model in by_model.items():
        host = hosts[model]
        if missing := _missing_answers(model, trials_of_model, host, cache):
            past = cache.agent_runs(model, host.url) if model.agent else None
            estimates.append(_estimate(model, missing, prices, past))
    return CostForecast(
        trials=len(trials),
        runs=sum(trial.runs for trial in trials),
        models=tuple(estimates),
        judgements=_judgements(trials, judge, prices) if judge else None,
    )


def _missing_answers(
    model: Model, trials: Sequence[Trial], host: Host, cache: Cache
) -> list[_Missing]:
    """Return the answers to a model's trials that are not recorded."""

    def is_recorded(request: Request) -> bool:
        return host.records_answers and cache.holds(request, host.url)

    def load(request: Request) -> Completion | None:
        return cache.load(request, host.url) if host.records_answers else None

    missing: list[_Missing] = []
    choosing = [trial for trial in trials if trial.chooses]
    for trial in trials:
        if trial.chooses:
            missing += _missing_choices(trial, load)
            continue
        runs = sum(not is_recorded(request(trial, run)) for run in range(trial.runs))
        if runs:
            missing.append(_Missing((request(trial, run=0),), runs))
    if missing and choosing and model.is_language_model:
        tool_probe = probe(model, choosing[-1].max_tokens)
        if not is_recorded(tool_probe):
            # A model that calls no tool at first is probed once more.
            missing.append(_Missing((tool_probe,), 2, is_answer=False))
    return missing


def _missing_choices(trial: Trial, load: Load) -> Iterator[_Missing]:
    """Yield a trigger trial's answers that are not recorded, grouped by the steps that are."""
    runs_by_step = Counter[int]()
    for run in range(trial.runs):
        *recorded, (_, last) = recorded_steps(trial, run, load)
        if last is None:
            runs_by_step[len(recorded)] += 1
    if runs_by_step:
        requests = longest_requests(request(trial, run=0))
        for step, runs in runs_by_step.items():
            yield _Missing(tuple(requests[step:]), runs)


def _judgements(trials: Sequence[Trial], judge: Model, prices: Prices) -> ModelEstimate:
    """Return the requests to the judge, one for each answer, as if it had the maximum length."""
    from pytest_upskill.grading.judge import judge_request

    judgements = []
    for trial in trials:
        if statements := trial.case.judge_checks:
            longest = judge_request(
                judge,
                statements,
                question=request(trial, run=0).user,
                answer=" " * (BYTES_PER_TOKEN * trial.max_tokens),
                reference=trial.case.reference,
            )
            # An unusable judgement is requested once more.
            judgements.append(_Missing((longest,), 2 * trial.runs))
    return _estimate(judge, judgements, prices)


def _estimate(
    model: Model, missing: Sequence[_Missing], prices: Prices, past: AgentRuns | None = None
) -> ModelEstimate:
    """Return the estimate of a model's missing answers."""
    requests = [(request, item.times) for item in missing for request in item.requests]
    usd = [
        times * cost
        for request, times in requests
        if (cost := prices.max_cost(request)) is not None
    ]
    return ModelEstimate(
        model=model,
        answers=sum(item.times for item in missing if item.is_answer),
        max_input_tokens=sum(times * max_input_tokens(request) for request, times in requests),
        max_output_tokens=sum(times * max_output_tokens(request) for request, times in requests),
        max_usd=sum(usd) if len(usd) == len(requests) else None,
        likely_usd=None if past is None else _likely_usd(model, missing, prices, past),
    )


def _likely_usd(
    model: Model, missing: Sequence[_Missing], prices: Prices, past: AgentRuns
) -> float | None:
    """Return the cost of an agent's runs by the mean of the recorded ones, None if unknown."""
    mean_of_answers = _mean_usd(model, past.answers, prices)
    mean_of_choices = _mean_usd(model, past.choices, prices)
    usd = 0.0
    for item in missing:
        task = item.requests[0].task
        mean = mean_of_choices if task is not None and task.chooses else mean_of_answers
        if mean is None:
            return None
        usd += item.times * mean
    return usd


def _mean_usd(model: Model, runs: Sequence[Completion], prices: Prices) -> float | None:
    costs = [cost for run in runs if (cost := prices.cost(model, run)) is not None]
    return fmean(costs) if costs else None
