"""Trials and cells as pairs of name and value, for JUnit XML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import fmean
from typing import TYPE_CHECKING, Literal, get_args

from pytest_upskill.figures.arm import AgentFigures, agent_figures
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import Gate, TriggerGate
from pytest_upskill.figures.trigger_cell import TriggerCell
from pytest_upskill.project.messages import safe_line
from pytest_upskill.stats import Estimate
from pytest_upskill.trials.result import RunResult, TrialResult

if TYPE_CHECKING:
    from pytest_upskill.figures.comparison import Comparison
    from pytest_upskill.figures.judged import Judged
    from pytest_upskill.figures.trial_group import TrialGroup

Properties = list[tuple[str, str]]


def trial_properties(result: TrialResult) -> Properties:
    """Return a trial's figures; checks, tokens, dollars and seconds are means over valid runs."""
    runs = result.runs
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
        ("upskill.tokens.in", _mean(runs, lambda run: run.completion.input_tokens, ".0f")),
        ("upskill.tokens.out", _mean(runs, lambda run: run.completion.output_tokens, ".0f")),
        ("upskill.cost_usd", _mean(runs, lambda run: run.completion.cost_usd, ".6f")),
        ("upskill.latency_s", _mean(runs, lambda run: run.completion.latency_s, ".3f")),
        ("upskill.attempts", str(sum(run.completion.attempts for run in runs))),
        ("upskill.replayed", str(sum(run.completion.replayed for run in runs))),
        *_agent_properties(result),
        ("upskill.digest.prompt", result.prompt_digest),
        ("upskill.digest.skill", result.skill_digest),
        *_chosen_skills(runs),
    ]


def _agent_properties(result: TrialResult) -> Properties:
    """Return what an agent did, as means per run; nothing for single requests."""
    if not result.agent:
        return []
    agent = agent_figures(result.runs)
    names = ("version", "offered", "loaded", "turns", "requests")
    values = ["n/a"] * len(names) if agent is None else _agent_means(agent)
    return [
        ("upskill.agent", result.agent),
        *((f"upskill.agent.{name}", text) for name, text in zip(names, values, strict=True)),
    ]


def _agent_means(agent: AgentFigures) -> list[str]:
    shares = (
        "n/a" if count is None else f"{count / agent.runs:.4g}"
        for count in (agent.offered, agent.loaded)
    )
    return [safe_line(agent.version), *shares, f"{agent.turns:.4g}", f"{agent.requests:.4g}"]


def _chosen_skills(runs: tuple[RunResult, ...]) -> Iterator[tuple[str, str]]:
    """Yield which skills were taken, one for each run; nothing where no model chose."""
    taken = [run.choice.taken or "none" for run in runs if run.choice is not None]
    if taken:
        yield "upskill.trigger.taken", safe_line(", ".join(taken))


def gate_properties(gate: Gate | TriggerGate) -> Properties:
    """Return a cell's figures; rates and lift are fractions, tokens are means over runs."""
    return [
        ("upskill.skill", gate.cell.skill),
        ("upskill.model", gate.cell.model),
        ("upskill.model.resolved", gate.cell.resolved),
        *figures(gate),
        *_comparison_figures(gate.comparison),
    ]


def figures(gate: Gate | TriggerGate) -> Properties:
    """Return a cell's figures without the comparison with its past."""
    cell = gate.cell
    if isinstance(cell, Cell):
        verdict = "regression" if gate.shows_regression else cell.verdict
        named = [("verdict", verdict), *_lift_figures(cell)]
    else:
        named = [*_trigger_figures(cell)]
    named.append((f"{gate.cell.units}.failed", str(len(gate.cell.failed_cases))))
    return [(f"upskill.{name}", value) for name, value in named]


def _trigger_figures(cell: TriggerCell) -> Iterator[tuple[str, str]]:
    yield from _estimate("trigger.recall", cell.recall)
    yield from _estimate("trigger.false_triggers", cell.false_triggers)
    if cell.precision is not None:
        yield "trigger.precision", f"{cell.precision:.4f}"
    yield "trigger.queries", str(cell.queries)
    yield "trigger.missing", str(cell.missing)
    yield from _endings(cell, "trigger.")


def _lift_figures(cell: Cell) -> Iterator[tuple[str, str]]:
    yield "lift.verdict", cell.verdict
    yield from _estimate("lift", cell.lift)
    if cell.judged is not None:
        yield from _judge_figures(cell.judged)
    for name, arm in (
        ("with", cell.with_skill),
        ("without", cell.without_skill),
        ("old", cell.old_skill),
    ):
        if arm is not None:
            yield f"pass.{name}", f"{arm.passes}/{arm.runs}"
            yield f"pass_rate.{name}", f"{arm.pass_rate:.4f}"
            yield f"checks.{name}", f"{arm.checks_passed:.2f}/{arm.checks:.2f}"
            yield f"tokens.{name}", "n/a" if arm.tokens is None else f"{arm.tokens:.1f}"
            yield f"cost_usd.{name}", "n/a" if arm.cost_usd is None else f"{arm.cost_usd:.6f}"
    if cell.token_ratio is not None:
        yield "tokens.ratio", f"{cell.token_ratio:.4f}"
    if cell.runs_needed is not None:
        yield "runs_needed", str(cell.runs_needed)
    yield "missing", str(cell.missing)
    yield from _endings(cell)
    yield "runs.spared", str(cell.skipped_runs)


def _endings(cell: TrialGroup, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield how many answers of each arm were cut or are refusals; nothing where none is."""
    for arm in cell.endings:
        name = arm.arm.removesuffix("_skill")
        for what, count in (("cut", arm.cut), ("refused", arm.refused)):
            if count:
                yield f"{prefix}{what}.{name}", f"{count}/{arm.answers}"


def _judge_figures(judged: Judged) -> Iterator[tuple[str, str]]:
    yield "judge", judged.judge
    yield "judge.calibrated", str(judged.calibrated).lower()
    if judged.tipping_point is not None:
        yield "judge.tipping_point", f"{judged.tipping_point:.4f}"
    if (correction := judged.correction) is None:
        return
    yield from _estimate("lift.corrected", correction.estimate)
    for arm, agreement in (("with", judged.with_skill), ("without", judged.without_skill)):
        if agreement is not None:
            yield from _estimate(f"judge.{arm}.holds", agreement.holds)
            yield from _estimate(f"judge.{arm}.fails", agreement.fails)


def _comparison_figures(comparison: Comparison | None) -> Iterator[tuple[str, str]]:
    if comparison is not None and comparison.measured:
        yield "upskill.compared_with", comparison.then
        yield "upskill.compared_cases", str(len(comparison.measured))
        yield "upskill.regressed", str(comparison.regressed).lower()
        yield "upskill.regression.p", f"{comparison.p:.4g}"


def _estimate(name: str, value: Estimate | None) -> Iterator[tuple[str, str]]:
    """Yield an estimate and the limits of its interval; nothing if it is unknown."""
    if value is not None:
        yield name, f"{value.estimate:.4f}"
        yield f"{name}.low", f"{value.low:.4f}"
        yield f"{name}.high", f"{value.high:.4f}"


def _checks(runs: tuple[RunResult, ...]) -> str:
    if not runs:
        return "n/a"
    held = fmean([run.held for run in runs])
    return f"{held:g}/{fmean([len(run.checks) for run in runs]):g}"


def _mean(runs: tuple[RunResult, ...], of: Callable[[RunResult], float | None], form: str) -> str:
    """Return the mean over the runs, or n/a if a value is unknown."""
    values = [value for run in runs if (value := of(run)) is not None]
    return format(fmean(values), form) if values and len(values) == len(runs) else "n/a"


Dashboard = Literal["datadog", "codecov"]
DASHBOARDS: tuple[Dashboard, ...] = get_args(Dashboard)
"""Dashboards for which JUnit properties are repeated under other names."""

_OWN = "upskill."


def mirror_properties(
    properties: Iterable[tuple[str, object]], mirrors: Iterable[Dashboard]
) -> Iterator[tuple[str, str]]:
    """Yield this plugin's properties of a test again, under each dashboard's names.

    Datadog reads ``dd_tags[NAME]``. Codecov reads ``evals.scores.NAME.value``; a dot in NAME would
    start another level, and only numbers are scores.

    Args:
        properties: Properties of one test.
        mirrors: Dashboards.
    """
    own = [(name, str(value)) for name, value in properties if name.startswith(_OWN)]
    for mirror in mirrors:
        for name, value in own:
            if mirror == "datadog":
                yield f"dd_tags[{name}]", value
            elif _is_number(value):
                score = f"evals.scores.{name.removeprefix(_OWN).replace('.', '_')}"
                yield f"{score}.type", "float"
                yield f"{score}.value", value


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
