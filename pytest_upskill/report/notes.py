"""Lines below the table: what its columns cannot say of a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pytest_upskill import stats
from pytest_upskill.cells import Cell
from pytest_upskill.gate import Gate
from pytest_upskill.report.cases import case_lines
from pytest_upskill.report.text import money, percent, points, runs


def notes(gates: Sequence[Gate], *, verbose: bool) -> Iterator[str]:
    """Write what stands beside the verdicts.

    Args:
        gates: What was decided about each cell.
        verbose: Whether to give the secondary figures too.
    """
    for gate in gates:
        yield from (f"{gate.cell.name}: {note}" for note in notes_of(gate, verbose=verbose))
    needed = sorted(gate.cell.runs_needed for gate in gates if gate.cell.runs_needed)
    if needed:
        span = " to ".join(dict.fromkeys(map(str, (needed[0], needed[-1]))))
        yield f"too few runs: --upskill-runs {span} would probably tell"


def agent_statements(cells: Iterable[Cell]) -> Iterator[str]:
    """Count by skill the statements that were judged and look as if they need an agent."""
    counts: Counter[str] = Counter()
    for key, count in {
        (cell.path, trial.skill, trial.case): trial.agent_statements
        for cell in cells
        for trial in cell.trials
    }.items():
        counts[key[1]] += count
    if total := counts.total():
        listed = ", ".join(f"{skill} {count}" for skill, count in counts.most_common() if count)
        look = "1 statement looks" if total == 1 else f"{total} statements look"
        yield (
            f"judge: {look} as if about an agent's work, which no single answer can show "
            f"({listed}): --upskill-lint lists them and how to exclude them"
        )


def notes_of(gate: Gate, *, verbose: bool) -> Iterator[str]:
    """Write what stands beside one verdict, for a place that names the cell."""
    yield from _remarks(gate)
    if verbose:
        yield from _figures(gate.cell)
        yield from _idle(gate)


def _remarks(gate: Gate) -> Iterator[str]:
    cell = gate.cell
    if gate.outcome == "skipped":
        yield gate.text
    elif cell.missing:
        yield f"{_are(cell.missing)} missing (no usable reply); the verdict stands without"
    if gate.comparison is not None:
        yield from gate.comparison.remarks
    if stats.mixed(cell.counts):
        yield "mixed: clearly helps some cases and clearly hurts others"


def _idle(gate: Gate) -> Iterator[str]:
    """Name the cases whose runs came out alike in every arm: paid for, and of no weight."""
    standing = {case.case: case.standing for case in case_lines(gate)}
    for alike, why in (
        ("always passes", "passes with and without the skill"),
        ("never passes", "never passes"),
    ):
        if cases := [one.case for one, _ in gate.cell.pairs if standing[one.case] == alike]:
            yield f"{why}, so tells nothing: {', '.join(cases)}"


def _are(count: int) -> str:
    return f"{runs(count)} {'is' if count == 1 else 'are'}"


def _figures(cell: Cell) -> Iterator[str]:
    if cell.token_ratio is not None:
        yield _tokens(cell, cell.token_ratio)
    interval = stats.population_interval(cell.counts)
    if interval is not None and cell.lift is not None:
        low, high = interval
        yield (
            f"on new prompts like these: lift {points(cell.lift)} points "
            f"[{points(low)}, {points(high)}]"
        )


def _tokens(cell: Cell, ratio: stats.TokenRatio) -> str:
    """Say what the skill costs: ``tokens x1.32 [1.10, 1.58]; pays for itself if ...``."""
    text = f"tokens x{ratio.ratio:.2f}"
    if ratio.low is not None and ratio.high is not None:
        text += f" [{ratio.low:.2f}, {ratio.high:.2f}]"
    one, other = cell.with_skill, cell.without_skill
    if one is None or other is None or cell.total_token_ratio is None:
        return text
    if one.tokens is None or other.tokens is None:
        return f"{text} where the server counted"
    if one.cost_usd and other.cost_usd:
        text += f", {money(other.cost_usd)} -> {money(one.cost_usd)} a run"
    return (
        f"{text}; pays for itself if it passes over {cell.total_token_ratio:.2f} times as often: "
        f"{percent(other.pass_rate)}% -> {percent(one.pass_rate)}%, "
        f"so it {'does' if cell.pays_for_itself else 'does not'}"
    )
