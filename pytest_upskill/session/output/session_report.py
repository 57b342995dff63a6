"""The report of a session as a value, from which all formats are written."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_upskill.cells.gate import Gate
from pytest_upskill.cells.trigger_gate import TriggerGate
from pytest_upskill.checks import CheckResult, Compile, Run
from pytest_upskill.completion import ToolCall
from pytest_upskill.report.document import ANSWER_LIMIT, Report, Session, runs_of
from pytest_upskill.repository.revision import revision
from pytest_upskill.session.options.settings import Settings
from pytest_upskill.trials.result import RunResult, TrialResult
from pytest_upskill.trials.skipped import Unmeasured

if TYPE_CHECKING:
    from pytest_upskill.compile import Compilers

G = TypeVar("G", Gate, TriggerGate)


def report_of(
    gates: Iterable[Gate],
    trigger_gates: Iterable[TriggerGate],
    settings: Settings,
    compilers: Callable[[], Compilers],
    root: str,
    *,
    unmeasured: Iterable[Unmeasured],
    recordings: Iterable[str],
    complete: bool,
) -> Report:
    """Return the report of the session.

    Args:
        gates: Decision about each cell.
        trigger_gates: Decision about each trigger cell.
        settings: Options of the session.
        compilers: Function that returns the compilers; called only if code was built.
        root: Absolute path of the rootdir, removed from all texts.
        unmeasured: Skills on models of which every trial was skipped.
        recordings: Lines about the recordings of a replay that the branch changed.
        complete: Whether the session was not stopped early and all files could be read.
    """
    gates = tuple(presentable(gate, root) for gate in gates)
    trigger_gates = tuple(presentable(gate, root) for gate in trigger_gates)
    built = any(
        check.name in {Compile.name, Run.name}
        for run in runs_of(gate.cell for gate in gates)
        for check in run.checks
    )
    session = Session(
        date=datetime.now(UTC).replace(microsecond=0),
        versions={
            "pytest-upskill": version("pytest-upskill"),
            "pytest": version("pytest"),
            "python": platform.python_version(),
        },
        models={model.label: model.resolved for model in settings.models},
        options=_options(settings),
        sandbox=compilers().level if built else None,
        complete=complete,
        unmeasured=tuple(unmeasured),
        recordings=tuple(recordings),
        revision=revision(settings.project, _folders((*gates, *trigger_gates), Path(root))),
    )
    return Report(sessions=(session,), gates=gates, trigger_gates=trigger_gates)


def _options(settings: Settings) -> dict[str, Any]:
    """Return the options that a report shows, by name."""
    return {
        "runs": settings.runs,
        "min_pass_rate": settings.thresholds.min_pass_rate,
        "min_lift": settings.thresholds.min_lift,
        "min_recall": settings.thresholds.min_recall,
        "max_false_triggers": settings.thresholds.max_false_triggers,
        "fail_on": sorted(settings.thresholds.fail_on),
        "max_tokens": settings.max_tokens,
        "params": [
            f"{model.label}:{entry}"
            for model in settings.models
            for entry in model.parameters.entries
        ],
        "compare": settings.compare,
        "judge": settings.judge.resolved if settings.judge else None,
        "cache": settings.cache_mode,
        "shard": "/".join(map(str, settings.shard)) if settings.shard else None,
    }


def _folders(gates: Iterable[Gate | TriggerGate], root: Path) -> set[Path]:
    """Return the folders of the case files."""
    return {(root / gate.cell.path).parent for gate in gates}


def presentable(gate: G, root: str) -> G:
    """Return a gate with long answers cut and paths relative to the rootdir.

    Args:
        gate: The gate.
        root: Absolute path of the rootdir.
    """
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
                tool_calls=tuple(map(_shortened, result.completion.tool_calls)),
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


def _shortened(call: ToolCall) -> ToolCall:
    """Return a tool call of bounded size: without long arguments."""
    known = call.arguments if len(json.dumps(call.arguments)) <= ANSWER_LIMIT else {}
    return replace(call, arguments=known, malformed=call.malformed[:ANSWER_LIMIT])
