"""The report as a value: what was run, every cell with its gate, and where it came from."""

from __future__ import annotations

import platform
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.gate import Gate
from pytest_upskill.checks import CheckResult, Compile, Run
from pytest_upskill.result import RunResult, SkippedCase, TrialResult, Unmeasured
from pytest_upskill.session.settings import Settings

if TYPE_CHECKING:
    from pytest_upskill.compile import Compilers

ANSWER_LIMIT = 65_536
"""Characters of an answer that a report keeps."""

Option = str | int | float | bool | list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One pytest run that a report holds results of; a merged report has several."""

    date: datetime
    """When it ended, in UTC."""
    versions: Mapping[str, str]
    """Of pytest-upskill, pytest and Python."""
    models: Mapping[str, str]
    """Label to what it stands for, without credentials."""
    options: Mapping[str, Option]
    """Those that the results depend on."""
    sandbox: str | None
    """What confined the compilers; None where none ran."""
    complete: bool
    """Whether it got to everything: it was not stopped, and every file could be read."""
    unmeasured: tuple[Unmeasured, ...] = ()
    """Of which every trial was skipped."""
    recordings: tuple[str, ...] = ()
    """Of a replay: what the branch changed in its recordings, a line with the sum, then each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that the report files are written from."""

    sessions: tuple[Session, ...]
    gates: tuple[Gate, ...]
    """A decision for each cell, in the order of case files and chosen models."""

    @property
    def cells(self) -> list[Cell]:
        """The cells that the gates are about."""
        return [gate.cell for gate in self.gates]

    @property
    def unmeasured(self) -> list[Unmeasured]:
        """What no session measured."""
        measured = {(cell.path, cell.skill, cell.model) for cell in self.cells}
        cases: defaultdict[tuple[str, str, str], set[SkippedCase]] = defaultdict(set)
        for each in (each for session in self.sessions for each in session.unmeasured):
            cases[each.path, each.skill, each.model].update(each.cases)
        return sorted(
            Unmeasured(path=path, skill=skill, model=model, cases=tuple(sorted(skipped)))
            for (path, skill, model), skipped in cases.items()
            if (path, skill, model) not in measured
        )


def report_of(
    gates: Iterable[Gate],
    settings: Settings,
    compilers: Callable[[], Compilers],
    root: str,
    *,
    unmeasured: Iterable[Unmeasured],
    recordings: Iterable[str],
    complete: bool,
) -> Report:
    """Sum up the session that ends.

    Args:
        gates: What was decided about each cell.
        settings: The session's options.
        compilers: Give what built the answers' code.
        root: Absolute path of the rootdir, which no report shows.
        unmeasured: Of which every trial was skipped.
        recordings: What the branch changed in the recordings of a replay.
        complete: Whether it got to everything: it was not stopped, and every file could be read.
    """
    gates = tuple(_presentable(gate, root) for gate in gates)
    built = any(
        check.name in {Compile.name, Run.name} for run in _runs(gates) for check in run.checks
    )
    session = Session(
        date=datetime.now(UTC).replace(microsecond=0),
        versions={
            "pytest-upskill": version("pytest-upskill"),
            "pytest": version("pytest"),
            "python": platform.python_version(),
        },
        models={model.label: model.resolved for model in settings.models},
        options={
            "runs": settings.runs,
            "min_pass_rate": settings.thresholds.min_pass_rate,
            "min_lift": settings.thresholds.min_lift,
            "fail_on": sorted(settings.thresholds.fail_on),
            "max_tokens": settings.max_tokens,
            "compare": settings.compare,
            "judge": settings.judge.resolved if settings.judge else None,
            "cache": settings.cache_mode,
            "shard": "/".join(map(str, settings.shard)) if settings.shard else None,
        },
        sandbox=compilers().level if built else None,
        complete=complete,
        unmeasured=tuple(unmeasured),
        recordings=tuple(recordings),
    )
    return Report(sessions=(session,), gates=gates)


def runs_of(cells: Iterable[Cell]) -> Iterator[RunResult]:
    """Go through all valid runs of the cells."""
    return (run for cell in cells for trial in cell.trials for run in trial.runs)


def dollars(runs: Iterable[RunResult]) -> float | None:
    """Add up what answers cost, also when they were recorded; None where a price is unknown."""
    costs = [run.completion.cost_usd for run in runs]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def _runs(gates: Iterable[Gate]) -> Iterator[RunResult]:
    return runs_of(gate.cell for gate in gates)


def _presentable(gate: Gate, root: str) -> Gate:
    """Cut long answers, and write paths as a reader elsewhere would."""
    below = re.compile(rf"{re.escape(root)}(?:(/)|(?![\w.-]))")

    def relative(text: str) -> str:
        return below.sub(lambda match: "" if match[1] else ".", text) if root != "/" else text

    def check(result: CheckResult) -> CheckResult:
        return replace(result, message=relative(result.message), detail=relative(result.detail))

    def run(result: RunResult) -> RunResult:
        text = result.completion.text
        return replace(
            result,
            completion=replace(
                result.completion,
                text=text[:ANSWER_LIMIT],
                reasoning=result.completion.reasoning[:ANSWER_LIMIT],
            ),
            checks=tuple(map(check, result.checks)),
            cut=result.cut + max(0, len(text) - ANSWER_LIMIT),
        )

    def trial(result: TrialResult) -> TrialResult:
        return replace(
            result,
            runs=tuple(map(run, result.runs)),
            errors=tuple(map(relative, result.errors)),
        )

    cell = replace(gate.cell, trials=tuple(map(trial, gate.cell.trials)))
    return replace(gate, cell=cell)
