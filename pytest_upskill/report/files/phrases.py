"""Sentences about cells and reports that Markdown and HTML share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pytest_upskill.figures.figure import columns_of
from pytest_upskill.figures.gate import Gate, ShownVerdict
from pytest_upskill.figures.triggers import BY_WORDS
from pytest_upskill.figures.wording import CASE_NEXT_STEP, failure, money, original_cost
from pytest_upskill.project.messages import counted
from pytest_upskill.report.document import Report, dollars, runs_of
from pytest_upskill.report.outcome import (
    Outcome,
    failed_trials,
    why_undecided,
)

VERDICTS: tuple[ShownVerdict, ...] = (
    "regression",
    "hurts",
    "missing data",
    "too few runs",
    "no effect",
    "helps",
)
"""Verdicts, the most urgent first."""

ICONS: Mapping[ShownVerdict, str] = {
    "regression": "\u25bc",
    "helps": "\u25b2",
    "hurts": "\u25bc",
    "no effect": "=",
    "too few runs": "?",
    "missing data": "!",
}
"""Characters that every font has."""

OUTCOME_ICONS: Mapping[Outcome, str] = {
    "failed": "\u274c",
    "undecided": "\u2754",
    "empty": "\u2754",
    "passed": "\u2705",
}


def headline(report: Report) -> str:
    """Return the result in one line, the worst first.

    ``20 of 36 cases failed with the skill; no skill hurts, 6 gates passed (helps 6)``
    """
    lifts = report.lifts
    parts = [_gates(lifts)] if lifts else []
    verdicts = {gate.verdict for gate in lifts}
    none_hurts = verdicts and verdicts.isdisjoint({"hurts", "regression", "missing data"})
    of_cases = _failed(lifts)
    if of_cases and none_hurts:
        of_cases += "; no skill hurts"
    failed = [text for text in (of_cases, _failed(report.triggers)) if text]
    if any(gate.outcome == "failed" for gate in lifts):
        parts += failed
    else:
        parts = failed + parts
    if report.triggers:
        parts.append(_ended(report.triggers, "trigger gate"))
    parts += _unmeasured(report)
    if failures := sum(session.other_failures for session in report.sessions):
        parts.append(f"{counted(failures, 'failure')} of other tests")
    if not parts and report.gates:
        parts = [BY_WORDS]
    return ", ".join(parts or ["No trial ran"])


def _unmeasured(report: Report) -> Iterator[str]:
    """Yield what was not measured or not compared."""
    if not report.gates:
        unchanged = (each.nothing_changed for each in report.sessions if each.nothing_changed)
        yield from (f"Nothing to measure: {text}" for text in unchanged)
    not_recorded = [trial for _, trial in failed_trials(report) if not trial.failed]
    if not_recorded:
        yield f"{counted(len(not_recorded), 'trial')} not recorded"
    if report.unmeasured_skills or any(why_undecided(report)):
        yield "not everything was measured"


def _failed(gates: Sequence[Gate]) -> str:
    """Return how many cases failed with the skill, or queries; empty if none did."""
    cells = [gate.cell for gate in gates]
    failed = {(cell.path, case) for cell in cells for case in cell.failed_cases}
    if not failed:
        return ""
    ran = {(cell.path, trial.case) for cell in cells for trial in cell.current_trials}
    measure = cells[0].measure
    what = counted(len(ran), measure.unit, measure.units)
    return f"{len(failed)} of {what} failed{measure.under_test}"


def failed_case_lines(report: Report) -> Iterator[str]:
    """Yield why each failed case or query failed, and what to do."""
    for cell, trial in report.failed_cases:
        why, *_ = failure(trial).splitlines()
        yield f"{cell.title}::{trial.case} on {cell.model}: {why}"
    if report.failed_cases:
        yield CASE_NEXT_STEP


def _gates(gates: Sequence[Gate]) -> str:
    if len(gates) == 1:
        (gate,) = gates
        if gate.verdict == "regression":
            return gate.text if gate.outcome == "failed" else f"{gate.cell.name}: {_change(gate)}"
        ended = {"passed": "passed", "failed": "failed", "skipped": "not decided"}
        return f"{gate.cell.name}: {gate.qualified_verdict}, gate {ended[gate.outcome]}"
    failed = [gate.verdict for gate in gates if gate.outcome == "failed"]
    # No gate fails because its skill helps: the reason is a threshold, which its own line names.
    shown = VERDICTS[-2::-1] if failed else VERDICTS[::-1]
    counts = Counter(failed or [gate.verdict for gate in gates])
    verdicts = ", ".join(f"{each} {counts[each]}" for each in shown if counts[each])
    return f"{_ended(gates, 'gate')} ({verdicts})" if verdicts else _ended(gates, "gate")


def _ended(gates: Sequence[Gate], noun: str) -> str:
    """Return how gates ended: ``1 of 2 gates failed``."""
    outcomes = Counter(gate.outcome for gate in gates)
    what = counted(len(gates), noun)
    if outcomes["failed"]:
        return f"{outcomes['failed']} of {what} failed"
    return f"{outcomes['passed']} of {what} passed" if outcomes["skipped"] else f"{what} passed"


def _change(gate: Gate) -> str:
    return "" if gate.comparison is None else gate.comparison.headline


def failed_gates(report: Report) -> list[Gate]:
    """Return the failed gates, which a page names before all results."""
    return [gate for gate in report.gates if gate.outcome == "failed"]


def results_in_words(report: Report) -> list[str]:
    """Return the result of each cell in plain words, with its name."""
    return [
        f"{gate.cell.name}: {'; '.join(words)}"
        for gate in report.lifts
        if (words := [*gate.lift.in_words])
    ]


def scope(report: Report) -> str:
    """Return a sentence about the number of cases and runs; empty if there are none."""
    gates = report.lifts or report.triggers
    cells = [gate.cell for gate in gates]
    if not cells:
        return ""
    measured = {(cell.path, trial.case) for cell in cells for trial in cell.trials}
    if not report.lifts:
        what = counted(len(measured), "query", "queries")
        tell = "intervals show how other queries like these would do"
        return f"Measured on {what}, {_often(gates)}: {tell}."
    skipped = {(cell.path, case) for cell in cells for case in cell.cases_not_run} - measured
    what = "this 1 case" if len(measured) == 1 else f"these {len(measured)} cases"
    if skipped:
        what += f" ({len(skipped)} more {'was' if len(skipped) == 1 else 'were'} skipped)"
    return (
        f"Measured on {what}, {_often(gates)} in each arm: intervals show how the same cases would "
        "vary if run again, not how other prompts would do."
    )


def _often(gates: Iterable[Gate]) -> str:
    """Return the least and the greatest number of runs: ``once``, ``1-3 runs of each``."""
    trials = (trial for gate in gates for trial in gate.cell.trials)
    counts = [len(trial.runs) + len(trial.errors) for trial in trials]
    runs = "-".join(dict.fromkeys((str(min(counts)), str(max(counts))))) if counts else "0"
    return "once" if runs == "1" else f"{runs} runs of each"


def matrix_parts(gate: Gate) -> list[str]:
    """Return both pass rates, the lift with its interval, and the token ratio of a cell."""
    columns, lift = columns_of(gate), gate.lift
    judged = lift.judged is not None and not lift.correction
    parts = [columns["pass rate"].replace("->", " \u2192 ")]
    if lift.deciding is not None:
        parts.append(f"{'judged ' * judged}{columns['lift [95 %]']}")
    if judged:
        parts.append("uncalibrated")
    if lift.token_ratio is not None:
        parts.append(f"\u00d7{lift.token_ratio:.2f} tok")
    return parts


def costs(report: Report) -> list[tuple[str, str]]:
    """Return names and values of the cost of all answers, in dollars and tokens."""
    runs = list(runs_of(report.gates))
    requested = [run for run in runs if not run.completion.replayed]
    replayed = [run for run in runs if run.completion.replayed]
    tokens = [run.completion.tokens for run in runs]
    known = [count for count in tokens if count is not None]
    rows = [
        ("requested", requested, money(dollars(requested))),
        ("replayed", replayed, original_cost(dollars(replayed))),
    ]
    return [
        *((name, f"{counted(len(each), 'answer')}, {cost}") for name, each, cost in rows if each),
        ("tokens", f"{sum(known):,}" if len(known) == len(tokens) else "n/a"),
        ("missing runs", str(sum(gate.cell.missing for gate in report.gates))),
    ]


def overall_verdict(report: Report) -> str:
    """Return the most urgent verdict, or that cases failed; empty without cells."""
    verdict = min((gate.verdict for gate in report.lifts), key=VERDICTS.index, default="")
    if report.failed_cases and verdict not in {"regression", "hurts"}:
        return "cases failed"
    return verdict


def mean_lift(report: Report) -> float | None:
    """Return the mean lift of the cells that have one, as a fraction; None if none has."""
    lifts = [found.estimate for gate in report.lifts if (found := gate.lift.deciding)]
    return fmean(lifts) if lifts else None


def matrix(report: Report) -> tuple[list[str], list[tuple[str, list[Gate | None]]]]:
    """Return the gates by skill and model.

    Returns:
        The models, and each skill with its gate on each model; None where it did not run.
    """
    models = list(dict.fromkeys(gate.cell.model for gate in report.lifts))
    rows: dict[str, dict[str, Gate]] = {}
    for gate in report.lifts:
        rows.setdefault(gate.cell.path, {})[gate.cell.model] = gate
    return models, [
        (next(iter(gates.values())).cell.title, [gates.get(model) for model in models])
        for gates in rows.values()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionMatrix:
    """Which skill one model chose for each wanted skill."""

    model: str
    taken: tuple[str, ...]
    """Columns."""
    rows: tuple[tuple[str, tuple[int, ...]], ...]
    """What was wanted, and how many runs took each column."""


def confusion_matrices(gates: Sequence[Gate]) -> list[ConfusionMatrix]:
    """Return the confusion matrix of each model in whose cells a query went wrong."""
    matrices = []
    for model in dict.fromkeys(gate.cell.model for gate in gates):
        choices = [gate.triggers for gate in gates if gate.cell.model == model]
        if not any(each.mistakes for each in choices):
            continue
        counts: Counter[tuple[str, str]] = Counter()
        for each in (each for of_skill in choices for each in of_skill.confusions):
            counts[each.wanted, each.taken] += each.runs
        taken = tuple(sorted({pair[1] for pair in counts}))
        rows = tuple(
            (wanted, tuple(counts[wanted, name] for name in taken))
            for wanted in sorted({pair[0] for pair in counts})
        )
        matrices.append(ConfusionMatrix(model=model, taken=taken, rows=rows))
    return matrices
