"""Before anything is paid for: how much there is to ask, and what it may cost at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pytest_upskill.completion import Request
from pytest_upskill.models import Model
from pytest_upskill.plan import Trial, request
from pytest_upskill.prices import Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a run is about to do."""

    trials: int
    runs: int
    """Completions that the trials need."""
    recorded: int
    """Completions that the cache holds already."""
    most_tokens: int
    """Output limit of all that is to be sent."""
    most_usd: float | None
    """Bound in dollars; None where the price of a model is not known."""
    models: tuple[Model, ...]
    """Those that will be asked."""
    unpriced: tuple[Model, ...]
    """Those of them without a known price."""

    @property
    def to_send(self) -> int:
        """Completions that must be asked for."""
        return self.runs - self.recorded


def forecast(
    trials: Iterable[Trial], *, recorded: Callable[[Request], bool], prices: Prices
) -> Forecast:
    """Count what the trials need.

    Args:
        trials: Those that will run.
        recorded: Tells whether the answer to a request is at hand.
        prices: Of the models that will be asked.
    """
    trials = list(trials)
    requests = [request(trial, run) for trial in trials for run in range(trial.runs)]
    to_send = [each for each in requests if not recorded(each)]
    costs = {each.model: prices.most(each) for each in to_send}
    unpriced = tuple(model for model, cost in costs.items() if cost is None)
    return Forecast(
        trials=len(trials),
        runs=len(requests),
        recorded=len(requests) - len(to_send),
        most_tokens=sum(each.max_tokens for each in to_send),
        most_usd=None if unpriced else sum(prices.most(each) or 0.0 for each in to_send),
        models=tuple(costs),
        unpriced=unpriced,
    )
