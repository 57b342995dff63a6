"""Estimate what a run will request and what that costs at most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.answers.trial_runner import Load, recorded_steps
from pytest_upskill.completion import Completion, Request
from pytest_upskill.model import Model
from pytest_upskill.spending.prices import (
    BYTES_PER_TOKEN,
    Prices,
    max_input_tokens,
    max_output_tokens,
)
from pytest_upskill.trials.conversation import longest_requests, probe
from pytest_upskill.trials.trial import Trial, request


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEstimate:
    """The requests to one model."""

    model: Model
    requests: int
    """Answers to request; one of a trigger trial takes up to three requests."""
    max_input_tokens: int
    max_output_tokens: int
    max_usd: float | None
    """Bound in dollars; None where the price of the model is not known."""
    likely_usd: float | None = None
    """Likely cost in dollars, by the mean of recorded runs of the agent; None without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostForecast:
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
        return sum(each.requests for each in self.models)

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
        return list(dict.fromkeys(each.model for each in self.everything if each.max_usd is None))


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

    def recorded(asked: Request) -> bool:
        host = hosts[asked.model]
        return host.recorded and cache.holds(asked, host.url)

    def load(asked: Request) -> Completion | None:
        host = hosts[asked.model]
        return cache.load_ahead(asked, host.url) if host.recorded else None

    def past(model: Model) -> _Past | None:
        return cache.runs_of(model, hosts[model].url) if model.agent else None

    asks: dict[Model, list[_Ask]] = defaultdict(list)
    for trial in trials:
        if trial.chooses:
            asks[trial.model] += _choices(trial, load)
            continue
        missing = sum(not recorded(request(trial, run)) for run in range(trial.runs))
        if missing:
            asks[trial.model].append(_Ask((request(trial, run=0),), missing))
    probed = {t.model: probe(t.model, t.max_tokens) for t in trials if t.chooses}
    for model, asked in probed.items():
        if asks[model] and model.provider != "offline" and not recorded(asked):
            # It is told once more to call a tool if it does not at first.
            asks[model].append(_Ask((asked,), 2, answers=0))
    return CostForecast(
        trials=len(trials),
        runs=sum(trial.runs for trial in trials),
        models=tuple(
            _of_model(model, of_model, prices, past(model))
            for model, of_model in asks.items()
            if of_model
        ),
        judgements=_judgements(trials, judge, prices) if judge else None,
    )


_Past = Mapping[bool, Sequence[Completion]]
"""The recorded runs of a model's agent, by whether the model chooses among skills in them."""


class _Ask(NamedTuple):
    """What may have to be sent for some answers."""

    requests: tuple[Request, ...]
    times: int
    answers: int = 1
    """Number of answers that these requests give."""


def _choices(trial: Trial, load: Load) -> Iterator[_Ask]:
    """Yield the requests of a trigger trial's runs that are not recorded, at most."""
    missing = Counter[int]()
    for run in range(trial.runs):
        *before, (_, last) = recorded_steps(trial, run, load)
        if last is None:
            missing[len(before)] += 1
    if missing:
        longest = longest_requests(request(trial, run=0))
        yield from (_Ask(tuple(longest[step:]), times) for step, times in missing.items())


def _judgements(trials: Sequence[Trial], judge: Model, prices: Prices) -> ModelEstimate:
    """Return the judge's requests, one for each answer of the greatest length."""
    from pytest_upskill.grading.judge import judge_request

    asks = [
        _Ask(
            (
                judge_request(
                    judge,
                    trial.case.judge_checks,
                    question=request(trial, run=0).user,
                    answer=" " * (BYTES_PER_TOKEN * trial.max_tokens),
                    reference=trial.case.reference,
                ),
            ),
            # An unusable judgement is asked for once more.
            2 * trial.runs,
        )
        for trial in trials
        if trial.case.judge_checks
    ]
    return _of_model(judge, asks, prices)


def _of_model(
    model: Model, asks: Sequence[_Ask], prices: Prices, past: _Past | None = None
) -> ModelEstimate:
    """Return the requests to a model."""
    each = [(request, ask.times) for ask in asks for request in ask.requests]
    usd = [(prices.max_cost(request), times) for request, times in each]
    known = [most * times for most, times in usd if most is not None]
    return ModelEstimate(
        model=model,
        requests=sum(ask.times * ask.answers for ask in asks),
        max_input_tokens=sum(times * max_input_tokens(request) for request, times in each),
        max_output_tokens=sum(times * max_output_tokens(request) for request, times in each),
        max_usd=sum(known) if len(known) == len(usd) else None,
        likely_usd=None if past is None else _likely(model, asks, prices, past),
    )


def _likely(model: Model, asks: Sequence[_Ask], prices: Prices, past: _Past) -> float | None:
    """Return the cost of an agent's runs by the mean of the recorded ones, None if unknown."""
    costs = {
        chooses: [prices.cost(model, each) for each in found] for chooses, found in past.items()
    }
    total = 0.0
    for ask in asks:
        task = ask.requests[0].task
        known = [cost for cost in costs.get(bool(task and task.chooses), ()) if cost is not None]
        if not known:
            return None
        total += ask.times * fmean(known)
    return total
