"""Trials and cells as pairs of name and value, for JUnit XML."""

from collections.abc import Callable, Iterable
from statistics import fmean

from pytest_upskill.figures.arm import agent_figures
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.presentation import AGENT, Figure, Scalar, figures, figures_in
from pytest_upskill.project.messages import safe_line
from pytest_upskill.trials.result import RunResult, TrialResult

Properties = list[tuple[str, str]]


def trial_properties(result: TrialResult) -> Properties:
    """Return a trial's figures; checks, tokens, dollars and seconds are means over valid runs."""
    runs = result.runs
    done = figures_in(AGENT, agent_figures(runs), name="agent.{}")
    taken = [run.choice.taken or "none" for run in runs if run.choice is not None]
    return [
        ("upskill.skill", result.skill),
        ("upskill.case", result.case),
        ("upskill.model", result.model),
        ("upskill.arm", result.arm),
        ("upskill.model.resolved", result.resolved),
        ("upskill.model.served", safe_line(", ".join(result.served)) or "n/a"),
        ("upskill.runs", str(len(runs))),
        ("upskill.runs.missing", str(len(result.errors))),
        ("upskill.runs.spared", str(result.skipped_runs)),
        ("upskill.runs.cut", str(sum(run.is_cut for run in runs))),
        ("upskill.runs.refused", str(sum(run.refused for run in runs))),
        ("upskill.passed", str(result.passes)),
        ("upskill.checks", _checks(runs)),
        ("upskill.tokens.in", _mean(runs, lambda run: run.completion.input_tokens)),
        ("upskill.tokens.out", _mean(runs, lambda run: run.completion.output_tokens)),
        ("upskill.cost_usd", _mean(runs, lambda run: run.completion.cost_usd)),
        ("upskill.latency_s", _mean(runs, lambda run: run.completion.latency_s)),
        ("upskill.attempts", str(sum(run.completion.attempts for run in runs))),
        ("upskill.replayed", str(sum(run.completion.replayed for run in runs))),
        *([("upskill.agent", result.agent), *figure_properties(done)] if result.agent else []),
        ("upskill.digest.prompt", result.prompt_digest),
        ("upskill.digest.skill", result.skill_digest),
        *([("upskill.trigger.taken", safe_line(", ".join(taken)))] if taken else []),
    ]


def gate_properties(gate: Gate) -> Properties:
    """Return what a gate is about, and the figures of its cell."""
    return [
        ("upskill.skill", gate.cell.skill),
        ("upskill.model", gate.cell.model),
        ("upskill.model.resolved", gate.cell.resolved),
        *figure_properties(figures(gate)),
    ]


def figure_properties(listed: Iterable[Figure]) -> Properties:
    """Return figures, their intervals too, but none that is unknown; rates are fractions."""
    return [
        (f"upskill.{name}", _exact(value))
        for figure in listed
        for name, value in figure.scalars.items()
        if value is not None
    ]


def _exact(value: Scalar) -> str:
    """Return a value with up to six decimals, and no exponent, which not every reader knows."""
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    return str(value).lower() if isinstance(value, bool) else safe_line(str(value))


def _checks(runs: tuple[RunResult, ...]) -> str:
    if not runs:
        return "n/a"
    return f"{fmean(run.held for run in runs):g}/{fmean(len(run.checks) for run in runs):g}"


def _mean(runs: tuple[RunResult, ...], of: Callable[[RunResult], float | None]) -> str:
    """Return the mean over the runs, or n/a if a value is unknown."""
    values = [value for run in runs if (value := of(run)) is not None]
    return _exact(fmean(values)) if values and len(values) == len(runs) else "n/a"
