"""The report as the ``benchmark.json`` of Anthropic's skill-creator, which its viewer reads.

The format is described in ``skill-creator/references/schemas.md`` in github.com/anthropics/skills.
Its pass rates are fractions of *checks*, and its standard deviation mixes cases and runs, so the
verdict is more reliable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import Gate
from pytest_upskill.report.document import Report, Session
from pytest_upskill.trials.result import RunResult, TrialResult
from pytest_upskill.trials.trial import Arm

_ARMS: tuple[Arm, Arm] = ("with_skill", "without_skill")
"""Configurations that the viewer supports."""

_FIGURES = ("pass_rate", "time_seconds", "tokens")


def write_benchmarks(report: Report, file: Path) -> Iterator[tuple[Path, str]]:
    """Yield a file for each skill and model.

    Args:
        report: The report.
        file: Path of the file if there is one cell. With several, skill and model are added to the
            name of each file, and a number if the name is taken.

    Yields:
        Paths and texts.
    """
    gates = [gate for gate in report.lifts if _trials(gate.cell)]
    taken: set[str] = set()
    for gate in gates:
        name = re.sub(r"[^\w.-]+", "-", f"{file.stem}-{gate.cell.skill}-{gate.cell.model}")
        numbered = chain([name], (f"{name}-{number}" for number in count(2)))
        # Some file systems ignore case.
        name = next(each for each in numbered if each.casefold() not in taken)
        taken.add(name.casefold())
        path = file if len(gates) == 1 else file.with_name(name + file.suffix)
        text = json.dumps(_benchmark(gate, report.sessions[-1]), indent=2, ensure_ascii=False)
        yield path, text + "\n"


def _benchmark(gate: Gate, session: Session) -> dict[str, Any]:
    cell = gate.cell
    numbers = {case: n for n, case in enumerate(dict.fromkeys(t.case for t in cell.trials), 1)}
    trials = _trials(cell)
    return {
        "metadata": {
            "skill_name": cell.skill,
            "skill_path": Path(cell.path.partition("::")[0]).parent.as_posix(),
            "executor_model": ", ".join(cell.served) or cell.resolved,
            "analyzer_model": "",
            "timestamp": f"{session.date:%Y-%m-%dT%H:%M:%SZ}",
            "evals_run": list(numbers.values()),
            "runs_per_configuration": max(len(t.runs) + len(t.errors) for t in trials),
        },
        "runs": [run for trial in trials for run in _runs(trial, numbers[trial.case])],
        "run_summary": _summary(trials),
        "notes": [gate.text],
    }


def _trials(cell: Cell) -> list[TrialResult]:
    return [trial for arm in _ARMS for trial in cell.trials if trial.arm == arm]


def _runs(trial: TrialResult, number: int) -> Iterator[dict[str, Any]]:
    for run_number, run in enumerate(trial.runs, 1):
        yield {
            "eval_id": number,
            "eval_name": trial.case,
            "configuration": trial.arm,
            "run_number": run_number,
            "result": {
                **_figures(run),
                "passed": run.held,
                "failed": len(run.checks) - run.held,
                "total": len(run.checks),
                "tool_calls": 0,
                "errors": 0,
            },
            "expectations": [
                {"text": check.name, "passed": check.passed, "evidence": check.message}
                for check in run.checks
            ],
            "notes": [run.ending] if run.ending else [],
        }


def _figures(run: RunResult) -> dict[str, float]:
    return {
        "pass_rate": round(run.held / len(run.checks), 4) if run.checks else 1.0,
        "time_seconds": round(run.completion.latency_s, 3),
        "tokens": run.completion.tokens or 0,
    }


def _summary(trials: Sequence[TrialResult]) -> dict[str, Any]:
    arms: dict[str, dict[str, dict[str, float]]] = {}
    for arm in _ARMS:
        runs = [_figures(run) for trial in trials if trial.arm == arm for run in trial.runs]
        arms[arm] = {name: _statistics([run[name] for run in runs]) for name in _FIGURES}

    def delta(name: str, form: str) -> str:
        return format(arms["with_skill"][name]["mean"] - arms["without_skill"][name]["mean"], form)

    return {
        **arms,
        "delta": {
            "pass_rate": delta("pass_rate", "+.2f"),
            "time_seconds": delta("time_seconds", "+.1f"),
            "tokens": delta("tokens", "+.0f"),
        },
    }


def _statistics(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return dict.fromkeys(("mean", "stddev", "min", "max"), 0.0)
    return {
        "mean": round(fmean(values), 4),
        "stddev": round(stdev(values), 4) if len(values) > 1 else 0.0,
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }
