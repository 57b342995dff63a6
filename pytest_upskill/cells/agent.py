"""Figures of an agent in one arm: whether the skill reached it, and what it used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from pytest_upskill.trials.result import RunResult


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
    process: Mapping[str, int]
    """Number of runs in which each statement about what the agent does is true."""

    @property
    def remarks(self) -> Iterator[str]:
        """What belongs next to the lift, one line each."""
        offered = "?" if self.offered is None else self.offered
        loaded = "?" if self.loaded is None else self.loaded
        yield f"offered / loaded in {offered} / {loaded} of {self.runs} runs"
        if self.process:
            true_in = (
                f"{statement} in {runs} of {self.runs} runs"
                for statement, runs in self.process.items()
            )
            yield f"{', '.join(true_in)} (not part of the pass rate)"
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
        times_true.update(
            {check.message.partition(": ")[0]: int(check.passed) for check in run.process}
        )
    return AgentFigures(
        version=", ".join(sorted({run.version for run in agent_runs})),
        runs=len(agent_runs),
        offered=_count([run.offered for run in agent_runs]),
        loaded=_count([run.loaded for run in agent_runs]),
        turns=fmean(run.turns for run in agent_runs),
        requests=fmean(run.requests for run in agent_runs),
        calls=fmean(len(run.calls) for run in agent_runs),
        process=dict(times_true),
    )


def _count(answers: list[bool | None]) -> int | None:
    """Return how many are true, None if one is unknown."""
    return None if None in answers else sum(map(bool, answers))
