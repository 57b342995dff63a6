"""Sentences about cells and reports that Markdown and HTML share."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pytest_upskill.figures.gate import Gate, ShownVerdict
from pytest_upskill.figures.presentation import columns_of, in_words
from pytest_upskill.figures.triggers import BY_WORDS, choices, lost_queries
from pytest_upskill.figures.wording import failure, money, original
from pytest_upskill.models.completion import sum_if_known
from pytest_upskill.project.messages import counted, listed
from pytest_upskill.report import exit_code
from pytest_upskill.report.document import Report, runs_of
from pytest_upskill.report.notes import next_steps

ICONS: Mapping[ShownVerdict, str] = {
    "regression": "\u25bc",
    "hurts": "\u25bc",
    "missing data": "!",
    "too few runs": "?",
    "no effect": "=",
    "helps": "\u25b2",
}
"""A character that every font has for each verdict, the most urgent first."""

_WORSE = frozenset({"regression", "hurts"})

OUTCOME_ICONS: Mapping[exit_code.Outcome, str] = {
    "failed": "\u274c",
    "undecided": "\u2754",
    "empty": "\u2754",
    "passed": "\u2705",
}


def mark(report: Report) -> exit_code.Outcome:
    """Return the outcome as its icon shows it.

    There is no tick where a skill is worse or loses checks, where a failure is excused, or where a
    gate is not decided or a comparison not made.
    """
    outcome = exit_code.outcome(report)
    is_open = any(gate.outcome == "skipped" for gate in (*report.lifts, *report.triggers))
    is_open |= _is_uncompared(report)
    unanswered = {each.path for each in report.unmeasured_skills if not each.chooses}
    is_open |= any(trial.excused for trial in report.trials)
    is_open |= not unanswered <= {gate.cell.path for gate in report.lifts}
    is_worse = overall_verdict(report) in _WORSE or _with_other_cases(report)
    is_doubtful = is_open or is_worse or any(each.without_trials for each in report.sessions)
    return "empty" if is_doubtful and outcome == "passed" else outcome


def headline(report: Report) -> str:
    """Return the result in one line; where something failed, without what passed.

    ``1 of 6 gates failed (hurts 1), 20 of 36 cases failed with the skill``
    """
    is_red = exit_code.outcome(report) == "failed"
    parts = [
        *_of_gates(report.lifts, "gate", is_red=is_red),
        *_of_gates(report.triggers, "trigger gate", is_red=is_red),
        *_unmeasured(report),
    ]
    if failures := sum(session.other_failures for session in report.sessions):
        parts.append(f"{counted(failures, 'failure')} of other tests")
    return ", ".join(parts) or (BY_WORDS if report.gates else "No trial ran")


def _of_gates(gates: Sequence[Gate], noun: str, *, is_red: bool) -> Iterator[str]:
    """Yield how the gates of one measure ended, and how many cases failed."""
    outcomes = Counter(gate.outcome for gate in gates)
    failed = [gate for gate in gates if gate.outcome == "failed"]
    what = counted(len(gates), noun)
    if len(gates) == 1 and not gates[0].cell.chooses:
        (gate,) = gates
        ended = ", gate passed" if gate.outcome == "passed" else ", gate not decided"
        verdict = f"{gate.qualified_verdict}{'' if is_red else ended}"
        yield gate.text if failed else f"{gate.cell.name}: {verdict}"
    elif failed:
        yield f"{len(failed)} of {what} failed{_verdicts(failed)}"
    elif gates and not is_red:
        all_passed = len(gates) == outcomes["passed"]
        passed = what if all_passed else f"{outcomes['passed']} of {what}"
        ended = f"{passed} passed" if outcomes["passed"] else f"{what} not decided"
        yield f"{ended}{_verdicts(gates)}"
    yield from _failed_cases(gates)


def _verdicts(gates: Sequence[Gate]) -> str:
    """Return the number of each verdict, ``(hurts 1)``, most urgent first."""
    counts = Counter(gate.verdict for gate in gates if not gate.cell.chooses)
    # No gate fails because its skill helps: the reason is a threshold, which its own line names.
    if any(gate.outcome == "failed" for gate in gates):
        del counts["helps"]
    shown = ", ".join(f"{each} {counts[each]}" for each in ICONS if counts[each])
    return f" ({shown})" if shown else ""


def _unmeasured(report: Report) -> Iterator[str]:
    """Yield what was not read, not measured or not compared."""
    lines = [line for session in report.sessions for line in session.unreadable]
    if files := {line.partition(":")[0] for line in lines}:
        yield f"{counted(len(files), 'file')} cannot be used"
    if not report.gates:
        unchanged = (each.nothing_changed for each in report.sessions if each.nothing_changed)
        yield from (f"Nothing to measure: {text}" for text in unchanged)
    lost = {each for session in report.sessions for each in session.without_trials}
    which = f" ({min(lost).partition(': ')[0]})" if len(lost) == 1 else ""
    if uncovered := exit_code.without_cases(report):
        yield uncovered + which
    elif lost:
        yield f"some of what changed may not be measured{which}"
    if skills := _with_other_cases(report):
        yield f"cases removed or changed in {counted(len(skills), 'skill')}"
    if excused := sum(trial.excused for trial in report.trials):
        yield f"{counted(excused, 'failure')} excused by xfail"
    if trials := exit_code.unrecorded_trials(report):
        yield f"{counted(len(trials), 'trial')} not recorded"
    if report.unmeasured_skills or any(exit_code.why_undecided(report)):
        yield "not everything was measured"
    elif _is_uncompared(report):
        yield "not everything was compared"


def _is_uncompared(report: Report) -> bool:
    comparisons = (gate.comparison for gate in (*report.lifts, *report.triggers))
    return any(each.lacking or each.lost for each in comparisons if each)


def _with_other_cases(report: Report) -> set[str]:
    """Return the paths of the skills of which a pull request removed or changed cases."""
    return {gate.cell.path for gate in report.gates if gate.cell.case_changes}


def _failed_cases(gates: Sequence[Gate]) -> Iterator[str]:
    """Yield how many cases failed with the skill, or queries, if any did."""
    cells = [gate.cell for gate in gates]
    if failed := {(cell.path, case) for cell in cells for case in cell.failed_cases}:
        ran = {(cell.path, trial.case) for cell in cells for trial in cell.current_trials}
        lost = listed(lost_queries(cells))
        how = f" ({lost})" if lost else " with the skill"
        yield f"{len(failed)} of {cells[0].count(len(ran))} failed{how}"


def failed_case_lines(report: Report) -> Iterator[str]:
    """Yield why each failed case or query failed, and what to do."""
    for gate, trial in report.failed_cases:
        why = failure(trial).splitlines()[0] + _before(gate, trial.case)
        yield f"{gate.cell.title}::{trial.case} on {gate.cell.model}: {why}"
    yield from next_steps(report)


def _before(gate: Gate, case: str) -> str:
    """Return what follows the reason of a failed case: how it did before."""
    if gate.comparison is None or (past := gate.past.get(case)) is None:
        return gate.cell.history_clause
    # The same answer in all runs, or one that offline quotes, is no chance.
    is_clear = gate.regressed or past.fell_clearly or gate.cell.is_offline or gate.cell.copied
    is_doubtful = past.counts.difference < 0 and not is_clear
    doubt = ", not clearly better, so this may be chance" if is_doubtful else ""
    return f"; at {gate.comparison.base} it passed {past.was}{doubt}"


def results_in_words(report: Report) -> list[str]:
    """Return the result of each cell in plain words, with its name."""
    return [f"{gate.cell.name}: {words}" for gate in report.lifts if (words := in_words(gate))]


def scope(report: Report) -> str:
    """Return a sentence about the number of cases and runs; empty if there are none."""
    cells = [gate.cell for gate in report.lifts or report.triggers]
    if not cells:
        return ""
    measured = {(cell.path, case) for cell in cells for case in cell.measured_cases}
    train = {(cell.path, trial.case) for cell in cells for trial in cell.trials if trial.train}
    of_lift = measured - train or measured
    what = cells[0].count(len(of_lift))
    names = ((cell.path, (*cell.skipped, *(each.case for each in cell.trials))) for cell in cells)
    if others := {(path, case) for path, cases in names for case in cases} - of_lift:
        what += f" ({len(others)} more left out)"
    trials = [trial for cell in cells for trial in cell.counted_trials]
    counts = [len(trial.runs) + len(trial.errors) for trial in trials]
    runs = "-".join(dict.fromkeys((str(min(counts)), str(max(counts)))))
    often = "once" if runs == "1" else f"{runs} runs of each"
    if not report.lifts:
        return f"Measured on {what}, {often}: intervals show how other queries like these would do."
    return (
        f"Measured on {what}, {often} in each arm: intervals show how the same cases would vary if "
        "run again, not how other prompts would do."
    )


def arrows(text: str) -> str:
    """Return a change from arm to arm with real arrows."""
    return re.sub(" ?-> ?", " \u2192 ", text)


def matrix_parts(gate: Gate) -> list[str]:
    """Return both pass rates, the lift with its interval, and the token ratio of a cell."""
    columns, lift = columns_of(gate), gate.cell.lift
    parts = [arrows(columns["pass rate"])]
    if lift.deciding is not None:
        parts.append(columns["lift [95 %]"])
    if lift.token_ratio is not None:
        parts.append(f"\u00d7{lift.token_ratio:.2f} tok")
    return parts


def costs(report: Report) -> list[tuple[str, str]]:
    """Return names and values of the cost of all answers and judgements, in dollars and tokens."""
    runs = [*runs_of(report.gates)]
    answers = [run.completion for run in runs]
    judgements = [run.judgement for run in runs if run.judgement]
    rows = []
    for who, replies in (("", answers), ("judge: ", judgements)):
        for name, was_replayed in (("requested", False), ("replayed", True)):
            if some := [each for each in replies if each.replayed is was_replayed]:
                cost = money(sum_if_known(each.cost_usd for each in some))
                cost = original(cost) if was_replayed else cost
                rows.append((f"{who}{name}", f"{counted(len(some), 'usable answer')}, {cost}"))
    tokens = sum_if_known(each.tokens for each in answers)
    return [
        *rows,
        ("tokens", "n/a" if tokens is None else f"{tokens:,}"),
        ("missing runs", str(sum(gate.cell.missing for gate in report.gates))),
    ]


def overall_verdict(report: Report) -> str:
    """Return the most urgent verdict, or what failed in spite of it; empty without cells."""
    gates = [*report.lifts, *(gate for gate in report.triggers if gate.regressed)]
    verdict = min((gate.verdict for gate in gates), key=[*ICONS].index, default="")
    failed = {
        "cases failed": report.failed_cases,
        "gates failed": report.failed_gates,
        "unusable files": any(session.unreadable for session in report.sessions),
    }
    return verdict if verdict in _WORSE else next(filter(failed.get, failed), verdict)


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


def confusion_matrices(
    gates: Sequence[Gate],
) -> Iterator[tuple[str, list[str], dict[str, list[int]]]]:
    """Yield each model for which a query went wrong, with its confusion matrix.

    That is the skills that it took, and for each skill that was wanted, how many runs took which.
    """
    for model in dict.fromkeys(gate.cell.model for gate in gates):
        cells = [gate.cell for gate in gates if gate.cell.model == model]
        trials = [trial for cell in cells for trial in cell.current_trials]
        if choices(trials, only_wrong=True):
            counts = choices(trials, only_wrong=False)
            taken = sorted({took for _, took in counts})
            wanted = sorted({right for right, _ in counts})
            yield model, taken, {right: [counts[right, took] for took in taken] for right in wanted}
