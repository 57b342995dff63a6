"""Cells and reports, made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_upskill.cases.skill import GateRule, Trigger
from pytest_upskill.checks import CheckResult
from pytest_upskill.commands.main import main
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.gate import Gate
from pytest_upskill.models import Completion
from pytest_upskill.report.document import Report, Session
from pytest_upskill.report.files.json import write_json
from pytest_upskill.trials.result import RunResult, TrialResult
from pytest_upskill.trials.trial import Arm
from pytest_upskill.trials.trigger_trial import Choice

PATH = "skills/billing/skill_meta.json"


def run(
    passed: bool = True,
    text: str = "It is 37.",
    tokens: int | None = 100,
    message: str = "contains",
) -> RunResult:
    completion = Completion(
        text=text,
        input_tokens=tokens,
        output_tokens=10,
        latency_s=0.5,
        cost_usd=0.001,
        served_model="haiku-1",
    )
    return RunResult(
        completion=completion,
        checks=(CheckResult(name="contains", passed=passed, message=message),),
    )


def trial(
    case: str,
    arm: Arm,
    runs: Sequence[RunResult],
    *,
    model: str = "haiku",
    skill: str = "billing",
    errors: tuple[str, ...] = (),
    question: str = "How many?",
    line: int = 1,
) -> TrialResult:
    return TrialResult(
        skill=skill,
        case=case,
        model=model,
        resolved=f"anthropic:{model}",
        arm=arm,
        min_pass_rate=None,
        prompt_digest=f"prompt of {case}",
        skill_digest="2222" if arm == "with_skill" else "",
        runs=tuple(runs),
        planned=len(runs) + len(errors),
        errors=errors,
        question=question,
        line=line,
    )


def cell(*trials: TrialResult, path: str = PATH) -> Cell:
    first = trials[0]
    return Cell(
        path=path,
        skill=first.skill,
        model=first.model,
        resolved=first.resolved,
        gate=GateRule(),
        planned=len(trials),
        trials=trials,
    )


def counted(
    counts: Sequence[tuple[int, int]], of: int = 5, *, model: str = "haiku", skill: str = "billing"
) -> Cell:
    """Make a cell of cases that pass so often with and without the skill."""
    trials: list[TrialResult] = []
    for number, (with_, without) in enumerate(counts, 1):
        arms: tuple[tuple[Arm, int, int], ...] = (
            ("with_skill", with_, 900), ("without_skill", without, 400)
        )  # fmt: skip
        for arm, passes, tokens in arms:
            runs = [run(index < passes, tokens=tokens) for index in range(of)]
            case = f"case-{number}"
            trials.append(trial(case, arm, runs, model=model, skill=skill, line=number))
    return cell(*trials, path=f"skills/{skill}/skill_meta.json")


def chosen(hits: Sequence[int], false: Sequence[int] = (), of: int = 5) -> Cell:
    """Make a trigger cell of queries for which the skill is taken so often.

    Args:
        hits: Runs in which it is taken, for each query that should trigger it.
        false: The same for each query that should not.
        of: Runs of each query.
    """
    wanted = [(times, True) for times in hits] + [(times, False) for times in false]
    trials = []
    for number, (times, should) in enumerate(wanted, 1):
        runs = []
        for index in range(of):
            took = index < times
            right = CheckResult(name="trigger", passed=took == should, message="")
            made = replace(
                run(), choice=Choice(taken="billing" if took else None, text=""), checks=(right,)
            )
            runs.append(made)
        query = trial(f"query-{number}", "trigger", runs)
        trials.append(replace(query, trigger=Trigger(should=should), listed_as="billing"))
    return cell(*trials)


def report(*cells: Cell) -> Report:
    session = Session(
        date=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        versions={"pytest-upskill": "0.1.0", "pytest": "9.2.0", "python": "3.11.7"},
        models={each.model: each.resolved for each in cells},
        options={"runs": 5, "fail_on": ["hurts"]},
        sandbox="bwrap",
        complete=True,
    )
    gates = (
        Gate(
            cell=each,
            outcome="failed" if each.lift.verdict == "hurts" else "passed",
            text=f"{each.skill} on {each.model}: the skill {each.lift.verdict}",
            next_step="correct it" if each.lift.verdict == "hurts" else "",
        )
        for each in cells
    )
    return Report(sessions=(session,), gates=tuple(gates))


def save(name: str, written: Report) -> str:
    """Write a report as ``--upskill-json`` does, and return its name."""
    Path(name).write_text(write_json(written), "utf-8")
    return name


def report_command(arguments: Sequence[str] = ()) -> int:
    """Run ``pytest-upskill report`` and return its exit code."""
    return main(["report", *arguments])
