"""The arms of a cell: which cases they share, their figures, and what an agent did in them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean
from typing import NamedTuple

from pytest_upskill.models.completion import sum_if_known
from pytest_upskill.stats import Estimate, pass_at_k, pass_hat_k
from pytest_upskill.trials.result import RunResult, TrialResult


class Pair(NamedTuple):
    """Trials of one case with and without the skill."""

    with_skill: TrialResult
    without_skill: TrialResult

    @property
    def case(self) -> str:
        """Id of the case."""
        return self.with_skill.case


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFigures:
    """Figures of one arm of a cell; each case has the same weight, whatever its number of runs."""

    runs: int
    """Valid runs."""
    passes: int
    """Valid runs in which every check passed."""
    pass_rate: float
    """Mean pass rate of the cases, a fraction."""
    checks_passed: float
    """Mean number of passed checks in a run."""
    checks: float
    """Mean number of checks in a run."""
    tokens: float | None
    """Mean tokens of a run, prompt and answer; None if a server did not count them."""
    cost_usd: float | None
    """Mean cost of a run in dollars; None if a price is unknown."""
    latency_s: float
    """Mean latency of a run in seconds."""
    tokens_per_pass: float | None
    """Tokens of all runs for each that passed; None if none did, or if they were not counted."""
    cost_usd_per_pass: float | None
    """Dollars of all runs for each that passed, likewise."""
    pass_at_k: Estimate | None
    """Probability that at least one of k runs passes; None if that is not asked or not known."""
    pass_hat_k: Estimate | None
    """Probability that all of k runs pass, likewise."""


def figures_of_runs(valid: Sequence[Sequence[RunResult]], at_k: int = 0) -> ArmFigures:
    """Return means over the valid runs of each case, averaged over the cases.

    Args:
        valid: Valid runs of each case, at least one each.
        at_k: The k of pass@k and pass^k; 0 for none.
    """

    def average(of: Callable[[RunResult], float]) -> float:
        return fmean(fmean(of(run) for run in runs) for runs in valid)

    counts = [(sum(run.passed for run in runs), len(runs)) for runs in valid]
    rates = [Fraction(*each) for each in counts]
    completions = [run.completion for runs in valid for run in runs]
    tokens = sum_if_known(completion.tokens for completion in completions)
    dollars = sum_if_known(completion.cost_usd for completion in completions)
    passes = sum(passed for passed, _ in counts)
    return ArmFigures(
        runs=len(completions),
        passes=passes,
        # Exact: rounding must not put a rate of 0.7 below a threshold of 0.7.
        pass_rate=float(sum(rates) / len(rates)),
        checks_passed=average(lambda run: run.held),
        checks=average(lambda run: len(run.checks)),
        tokens=None if tokens is None else average(lambda run: run.completion.tokens or 0),
        cost_usd=None if dollars is None else average(lambda run: run.completion.cost_usd or 0),
        latency_s=average(lambda run: run.completion.latency_s),
        tokens_per_pass=tokens / passes if tokens is not None and passes else None,
        cost_usd_per_pass=dollars / passes if dollars is not None and passes else None,
        pass_at_k=pass_at_k(counts, at_k) if at_k else None,
        pass_hat_k=pass_hat_k(counts, at_k) if at_k else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFigures:
    """What an agent did in the valid runs of one arm."""

    version: str
    """Versions of the agent, separated by commas."""
    runs: int
    offered: int | None
    """Runs in which the skill was in the catalogue; None if that is unknown."""
    loaded: int | None
    """Runs in which the skill's instructions reached the model; None if that is unknown."""
    turns: float
    """Mean number of replies of the model in a run."""
    requests: float
    """Mean number of requests of a run, with retries."""
    calls: float
    """Mean number of tool calls in a run."""
    fields_left_out: Sequence[str]
    """Fields of requests that were not passed on to the host."""
    process: Mapping[str, int]
    """Number of runs in which each statement about what the agent does is true."""

    def share(self, runs: int | None) -> float | None:
        """Return a number of runs as a fraction of all; None if it is unknown."""
        return None if runs is None else runs / self.runs

    @property
    def remarks(self) -> Iterator[str]:
        """What belongs next to the lift, one line each."""
        offered = "?" if self.offered is None else self.offered
        loaded = "?" if self.loaded is None else self.loaded
        yield f"offered / loaded in {offered} / {loaded} of {self.runs} runs"
        if self.process:
            true_in = (
                f"{what} in {runs} of {self.runs} runs" for what, runs in self.process.items()
            )
            yield f"{', '.join(true_in)} (not part of the pass rate)"
        if self.fields_left_out:
            yield f"not passed on in requests: {', '.join(self.fields_left_out)}"
        if not self.calls:
            yield "no run called a tool: make sure that the model and its server can call tools"


def agent_figures(runs: Iterable[RunResult]) -> AgentFigures | None:
    """Return the figures of an agent's runs, None if there are none."""
    runs = tuple(runs)
    agent_runs = [run.completion.agent_run for run in runs if run.completion.agent_run is not None]
    if not agent_runs:
        return None
    times_true: Counter[str] = Counter()
    for run in runs:
        # A case may state the same thing twice; it is true in a run at most once.
        is_true = {check.message.partition(": ")[0]: int(check.passed) for check in run.process}
        times_true.update(is_true)
    return AgentFigures(
        version=", ".join(sorted({run.version for run in agent_runs})),
        runs=len(agent_runs),
        offered=sum_if_known(run.offered for run in agent_runs),
        loaded=sum_if_known(run.loaded for run in agent_runs),
        turns=fmean(len(run.turns) for run in agent_runs),
        requests=fmean(run.requests for run in agent_runs),
        calls=fmean(len(run.calls) for run in agent_runs),
        fields_left_out=sorted({name for run in agent_runs for name in run.fields_left_out}),
        process=dict(times_true),
    )
