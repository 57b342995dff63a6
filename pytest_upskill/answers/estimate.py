"""The forecast before a run: what it will request, what that costs at most, and what it may cost.

The likely cost is the mean of the model's recordings of the same case in the same arm, else of the
arm; without any, that of answers of typical lengths. The likely time is told from recordings only,
as servers differ a hundredfold.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import fmean
from typing import Any, NamedTuple

from pytest_upskill.answers.batches import PRICE, is_batchable
from pytest_upskill.answers.prices import BYTES_PER_TOKEN, max_output_tokens, size_of
from pytest_upskill.answers.recordings import identity, request_fields
from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.answers.run import recorded_steps
from pytest_upskill.models import Completion, Model, Request
from pytest_upskill.project.grouping import grouped
from pytest_upskill.trials.trial import Trial, request_of
from pytest_upskill.trials.trigger_trial import longest_requests, probe


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEstimate:
    """The answers to request from one model, and what they cost."""

    model: Model
    answers: int
    """Answers to request; one of a trigger trial takes up to three requests."""
    max_usd: float | None
    """Maximum cost in dollars; None if the price of the model is unknown."""
    likely_usd: float | None
    """What they are likely to cost; None as well."""
    likely_seconds: float | None
    """Seconds that they are likely to take, one after the other; None without recordings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostForecast:
    """The answers that a run needs, and what those cost that it must request."""

    trials: int
    runs: int
    """Answers that the trials need."""
    models: tuple[ModelEstimate, ...]
    """The answers that are not recorded, by model."""
    equal: int = 0
    """Answers that are not requested as the request is equal to another one."""
    likely_seconds: float | None = None
    """Likely time of all requests, those to different hosts at the same time; None if unknown."""
    judgements: ModelEstimate | None = None
    """All requests to the judge, recorded or not, as they depend on the answers; None for none."""

    @property
    def to_send(self) -> int:
        """Answers that must be requested."""
        return sum(estimate.answers for estimate in self.models)

    @property
    def recorded(self) -> int:
        """Answers that are recorded."""
        return self.runs - self.to_send - self.equal

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
    """Requests of equal length whose answers are not recorded."""

    request: Request
    at_most: int
    """Maximum number of such requests."""
    likely: float
    """Likely number of them."""
    output: int
    """Tokens of such an answer, as long as none is recorded."""
    answers: int = 0
    """Answers that they are for, unless they only follow others, or probe the model."""


_ANSWER, _CHOICE, _JUDGEMENT, _RUN = 600, 80, 250, 3_000
"""Typical tokens of an answer, a step of a choice, a judgement, and an agent's run."""

_RUN_INPUT = 60_000
"""Typical tokens of all prompts of an agent's run."""

_FURTHER_STEPS = 0.3
"""Share of choices that take a further request."""


def forecast(
    trials: Iterable[Trial], hosts: Mapping[Model, Host], resources: Resources
) -> CostForecast:
    """Return what the trials will request.

    Args:
        trials: Those that will run.
        hosts: The host of each model.
        resources: The recordings, and the prices of the models.
    """
    trials = list(trials)
    by_model = grouped((trial.model, trial) for trial in trials)
    past = _Recordings(hosts, resources)
    missing = {model: past.missing(model, of_model) for model, of_model in by_model.items()}
    runs = sum(trial.runs for trial in trials)
    wanted = sum(item.answers for items in missing.values() for item in items)
    asked = estimates = [past.estimate(model, items) for model, items in missing.items() if items]
    judgements = None
    judge = next((trial.judge for trial in trials if trial.judge and trial.case.judge_checks), None)
    if judge is not None:
        share = min(1.0, wanted / max(1, runs))
        judgements = past.estimate(judge, _judgements(trials, judge, share))
        asked = [*estimates, judgements]
    by_host: defaultdict[Host, float] = defaultdict(float)
    for each in asked:
        in_flight = min(resources.concurrency, max(1, each.answers))
        by_host[hosts[each.model]] += (each.likely_seconds or 0.0) / in_flight
    is_known = all(each.likely_seconds is not None for each in asked)
    return CostForecast(
        trials=len(trials),
        runs=runs,
        models=tuple(estimates),
        equal=past.equal,
        likely_seconds=max(by_host.values(), default=None) if is_known else None,
        judgements=judgements,
    )


class _Recordings:
    """What is recorded, and what that shows of other answers.

    Args:
        hosts: The host of each model.
        resources: The recordings, and the prices of the models.
    """

    def __init__(self, hosts: Mapping[Model, Host], resources: Resources) -> None:
        self._hosts = hosts
        self._cache, self._prices = resources.cache, resources.budget.prices
        self._batch = resources.batches.enabled
        self._mean = cache(self._mean_of_kind)  # many requests are of one kind
        self._asked = Counter[str]()
        """How often each request is made, by its identity."""

    @property
    def equal(self) -> int:
        """Number of requests that are equal to another one."""
        return self._asked.total() - len(self._asked)

    @cached_property
    def _past(self) -> Mapping[str, list[Completion]]:
        """Recorded completions by kind."""
        past = self._cache.past
        return grouped((kind, each) for fields, each in past for kind in _kinds(fields))

    def missing(self, model: Model, trials: Sequence[Trial]) -> list[_Missing]:
        """Return the requests of a model's trials whose answers are not recorded, each once."""
        missing: list[_Missing] = []
        for trial in trials:
            if trial.chooses:
                missing += self._missing_choices(trial)
            elif runs := sum(
                not self._is_known(request_of(trial, run)) for run in range(trial.runs)
            ):
                output = _RUN if model.agent else _ANSWER
                missing.append(_Missing(request_of(trial, run=0), runs, runs, output, answers=runs))
        choosing = [trial for trial in trials if trial.chooses]
        if missing and choosing and model.is_language_model:
            tool_probe = probe(model, choosing[-1].max_tokens)
            if not self._is_known(tool_probe):
                # A model that calls no tool at first is probed once more.
                missing.append(_Missing(tool_probe, 2, 1.0, _CHOICE))
        return missing

    def _missing_choices(self, trial: Trial) -> list[_Missing]:
        """Return all requests of a trigger trial's answers that are not recorded."""
        ends = [[*recorded_steps(trial, run, self._load)][-1] for run in range(trial.runs)]
        runs = sum(completion is None for _, completion in ends)
        if not runs:
            return []
        first, *further = longest_requests(request_of(trial, run=0))
        output = _RUN if trial.model.agent else _CHOICE
        return [
            _Missing(first, runs, runs, output, answers=runs),
            *(_Missing(each, runs, _FURTHER_STEPS * runs, output) for each in further),
        ]

    def _load(self, request: Request) -> Completion | None:
        host = self._hosts[request.model]
        return self._cache.load(request, host.url) if host.records_answers else None

    def _is_known(self, request: Request) -> bool:
        host = self._hosts[request.model]
        if not host.records_answers or self._cache.mode == "off":
            return False
        if self._cache.holds(request, host.url):
            return True
        self._asked[key := identity(request, host.url)] += 1
        return self._asked[key] > 1

    def estimate(self, model: Model, missing: Sequence[_Missing]) -> ModelEstimate:
        """Return the estimate of a model's missing answers."""
        host, max_usd, likely_usd = self._hosts[model], 0.0, 0.0
        seconds: float | None = 0.0
        takes_time = model.is_language_model and not (self._batch and host.may_have_batches)
        for item in missing:
            in_batch = self._batch and host.is_vendor_with_batches and is_batchable(item.request)
            share = PRICE if in_batch else 1.0
            max_usd += item.at_most * share * (self._prices.max_cost(item.request) or 0.0)
            each_usd, each_seconds = self._likely(item)
            likely_usd += item.likely * share * each_usd
            if seconds is not None and item.likely and takes_time:
                seconds = None if each_seconds is None else seconds + item.likely * each_seconds
        has_price = self._prices.has_price(model)
        return ModelEstimate(
            model=model,
            answers=sum(item.answers for item in missing),
            max_usd=max_usd if has_price else None,
            likely_usd=min(likely_usd, max_usd) if has_price else None,
            likely_seconds=seconds,
        )

    def _likely(self, item: _Missing) -> tuple[float, float | None]:
        """Return what a request is likely to cost, and its seconds, None if they are unknown."""
        request = item.request
        kinds = _kinds(request_fields(request, self._hosts[request.model].url))
        kind = next((each for each in kinds if each in self._past), "")
        usd, seconds = self._mean(request.model, kind)
        if usd is None:
            size = size_of(replace(request, turns=()))
            typical = Completion(
                text="",
                input_tokens=_RUN_INPUT if request.task else size // BYTES_PER_TOKEN,
                output_tokens=min(item.output, max_output_tokens(request)),
            )
            usd = self._prices.cost(request.model, typical) or 0.0
        return usd, seconds

    def _mean_of_kind(self, model: Model, kind: str) -> tuple[float | None, float | None]:
        """Return the mean cost and seconds of recorded answers of a kind, None if unknown."""
        past = self._past.get(kind, ())
        # Some servers count no tokens, and answers of batches have no time.
        usd = [self._prices.cost(model, each) or 0.0 for each in past if each.tokens is not None]
        times = [each.latency_s for each in past if each.latency_s]
        return fmean(usd) if usd else None, fmean(times) if times else None


def _kinds(fields: Mapping[str, Any]) -> list[str]:
    """Return what recorded answers of similar length have in common, the most similar first."""
    given = [name for name in ("agent", "catalogue", "tools", "turns", "skill") if fields.get(name)]
    of_arm = fields.get("model"), fields.get("frame"), given
    return [repr((*of_arm, fields.get("user"))), repr(of_arm)]


def _judgements(trials: Sequence[Trial], judge: Model, share: float) -> list[_Missing]:
    """Return the requests to the judge: those about the longest answers, and about likely ones.

    Args:
        trials: The trials of a session.
        judge: The judge.
        share: Share of the answers that are not recorded; the others are judged already.
    """
    from pytest_upskill.grading.judge import judge_request

    judgements = []
    for trial in trials:
        if not trial.case.judge_checks:
            continue
        question = request_of(trial, run=0).user
        most = 2 * trial.runs  # An unusable judgement is requested once more.
        likely_length = min(_ANSWER, trial.max_tokens)
        for tokens, at_most, likely in (
            (trial.max_tokens, most, 0.0),
            (likely_length, 0, share * trial.runs),
        ):
            answer = " " * (BYTES_PER_TOKEN * tokens)
            asked = judge_request(judge, trial.case, question=question, answer=answer)
            judgements.append(_Missing(asked, at_most, likely, _JUDGEMENT, answers=at_most))
    return judgements
