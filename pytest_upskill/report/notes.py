"""Notes about cells, printed below the table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from pytest_upskill import stats
from pytest_upskill.checks.judge import GIVEN_UP, UNUSABLE, cause_of
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.judged import Judged
from pytest_upskill.figures.lift import Lift
from pytest_upskill.figures.triggers import BY_WORDS
from pytest_upskill.figures.wording import (
    bounds,
    estimate,
    judge_accuracy,
    percent,
    points,
    rate_text,
)
from pytest_upskill.project.messages import counted, listed
from pytest_upskill.report.document import Report
from pytest_upskill.report.outcome import why_undecided
from pytest_upskill.trials.needs import unmeasured_lines

_MIN_CASES_FOR_NEW_PROMPTS = 10
"""The interval for new prompts is too narrow with fewer."""

_PROBABLE = 0.5
"""Least chance of a verdict that more runs of the same cases alone are worth their cost."""

_MAIN_SHARE = 0.5
"""Share of an interval's squared width from which on more labels narrow it most."""


def notes(gates: Sequence[Gate], *, verbose: bool, said: Collection[str] = ()) -> Iterator[str]:
    """Yield the notes about all cells of one measure.

    Args:
        gates: Decision about each cell.
        verbose: Whether to include the secondary figures.
        said: Other lines about these cells; what they end with is not repeated.
    """
    names = defaultdict[str, list[str]](list)
    for gate in gates:
        # That of a failed gate is printed with the failures.
        known = gate.report if gate.outcome == "failed" else ""
        for note in notes_of(gate, verbose=verbose):
            if note not in known:
                names[note].append(gate.cell.name)
    lines = (f"{listed(cells)}: {note}" for note, cells in names.items())
    yield from (line for line in lines if not any(other.endswith(line) for other in said))
    lifts = [gate for gate in gates if not gate.cell.chooses]
    yield from _too_few(lifts)
    yield from unusable_judgements(lifts)
    if any(gate.lift.uncalibrated and gate.cell.labels is None for gate in lifts):
        yield (
            "judge: nobody has checked it: write a report with --upskill-json, then label some of "
            "its answers: pytest-upskill judge draw REPORT"
        )


def _too_few(gates: Sequence[Gate]) -> Iterator[str]:
    """Yield what would decide about cells that have too few runs: more of them, or more cases."""
    vary = [gate for gate in gates if gate.verdict == "too few runs" and gate.lift.runs_needed]
    if needed := sorted(gate.lift.runs_needed or 0 for gate in vary):
        chances = sorted(gate.lift.chance_of_enough or 0.0 for gate in vary)
        without = sorted(filter(None, (gate.lift.baseline_runs_needed for gate in vary)))
        baseline = f" --upskill-baseline-runs {_span(without)}" if without else ""
        more = ", and more cases raise that" if chances[0] < _PROBABLE else ""
        yield (
            f"too few runs on {_models(vary)}: --upskill-runs {_span(needed)}{baseline} would be "
            f"enough with a probability of {_span([*map(percent, chances)])} %{more}"
        )
    if same := [gate for gate in gates if _shows_no_difference(gate)]:
        yield (
            f"no difference so far on {_models(same)}, and too few runs to rule one out: raise "
            "--upskill-runs, or add cases"
        )
    if alike := [gate for gate in gates if _would_repeat_answers(gate)]:
        yield (
            f"too few cases for {_models(alike)}: further runs would repeat the answers, so add "
            "cases"
        )


def _models(gates: Iterable[Gate]) -> str:
    return ", ".join(dict.fromkeys(gate.cell.model for gate in gates))


def short_notes(gates: Iterable[Gate]) -> Iterator[str]:
    """Yield the notes without which the table misleads, for ``-q``."""
    gates = [*gates]
    for gate in gates:
        lines = [*_open_verdict(gate.lift)]
        if gate.comparison is not None:
            lines += gate.comparison.warnings
        yield from (f"{gate.cell.name}: {line}" for line in lines)
    yield from statements_not_graded(gates)


def _open_verdict(lift: Lift) -> Iterator[str]:
    """Yield why the verdict is not the one that the runs show, if it is not."""
    if lift.verdict == "too few runs" and lift.doubt:
        yield lift.doubt


def about_the_whole(report: Report, *, names_error: bool = True) -> list[str]:
    """Return what was not measured, compared or graded, one line each, without repeats."""
    lines = (
        *why_undecided(report, names_error=names_error),
        *(line for session in report.sessions for line in session.without_trials),
        *(unmeasured_lines(report.unmeasured_skills) if report.gates else ()),
        *statements_not_graded(report.lifts),
    )
    return [*dict.fromkeys(lines)]


def statements_not_graded(gates: Sequence[Gate]) -> Iterator[str]:
    """Yield how many statements had no judge, and how many no answer can show."""
    if ungraded := sum({gate.cell.path: gate.cell.ungraded for gate in gates}.values()):
        statements = f"{counted(ungraded, 'statement')} {'is' if ungraded == 1 else 'are'}"
        yield f"judge: {statements} ungraded: name a model with --upskill-judge"
    undecidable = {
        (gate.cell.path, trial.case, statement)
        for gate in gates
        for trial in gate.cell.trials
        for statement in trial.undecidable
    }
    if undecidable:
        are = f"{counted(len(undecidable), 'statement')} {'is' if len(undecidable) == 1 else 'are'}"
        yield (
            f"judge: {are} left out of every arm, as an answer cannot show them: write an agent "
            "before the model, as in loop:MODEL"
        )


def notes_of(gate: Gate, *, verbose: bool) -> Iterator[str]:
    """Yield the notes about one cell, without its name."""
    cell, lift = gate.cell, gate.lift
    yield from cell.ending_notes
    if lift.agent is not None:
        yield from lift.agent.remarks
    if gate.outcome == "skipped":
        yield gate.text
    elif cell.missing:
        are = f"{counted(cell.missing, 'run')} {'is' if cell.missing == 1 else 'are'}"
        yield f"{are} missing; the decision would be the same"
    if gate.comparison is not None:
        open_sentence = gate.text if gate.outcome == "skipped" else ""
        yield from (line for line in gate.comparison.remarks if line not in open_sentence)
    if cell.chooses:
        yield from cell.triggers.details(regressed=False)
        return
    yield from judge_notes(gate)
    yield from _open_verdict(lift)
    # The notes about a judge explain its verdicts.
    if gate.outcome != "skipped" and lift.judged is None and _contradicts_interval(lift):
        p = stats.lift_test(lift.counts)
        yield (
            f"the interval excludes 0, but the exact test decides: p = {p:.2g}, and at most "
            f"{lift.alpha:.2g} with {stats.MIN_RUNS} runs in each arm is needed"
        )
    yield from _about_runs(lift)
    if cell.at_k:
        yield _at_k(lift, cell.at_k)
    if verbose:
        yield from _on_new_prompts(lift)


def _span(values: Sequence[object]) -> str:
    """Return the first and the last of sorted values, or the only one."""
    return " to ".join(dict.fromkeys(map(str, (values[0], values[-1]))))


def _at_k(lift: Lift, k: int) -> str:
    """Return pass@k and pass^k of both arms."""
    arms = [arm for arm in (lift.without_skill, lift.with_skill) if arm]
    at_k = [rate_text(arm.pass_at_k) for arm in arms if arm.pass_at_k]
    hat_k = [rate_text(arm.pass_hat_k) for arm in arms if arm.pass_hat_k]
    if not at_k:
        return f"pass@{k} is unknown, as no case has {k} runs that count: --upskill-runs {k}"
    return f"pass@{k} {' -> '.join(at_k)}, pass^{k} {' -> '.join(hat_k)}"


def _about_runs(lift: Lift) -> Iterator[str]:
    if lift.cell.copied:
        yield (
            "the model gave one answer in all runs of every trial, so one run counts: let its "
            "server vary the answers (--upskill-param temperature=1), or add cases"
        )
    if lift.skipped_runs:
        why = "the other rounds would have shown helps or hurts with a probability under 2 %"
        if lift.verdict in {"helps", "hurts"}:
            why = (
                f"p is at most {lift.alpha:.2g}; a lift that ends the runs is too large on average"
            )
        yield f"stopped after {lift.rounds_done} of {lift.rounds_planned} rounds: {why}"
    if lift.look > 1:
        yield (
            f"runs were added to recorded ones (look {lift.look}), so p must be at most "
            f"{lift.alpha:.2g} for helps or hurts"
        )
    if train := len(lift.pairs) - len(lift.counting_pairs):
        are = "is" if train == 1 else "are"
        yield f"{counted(train, 'train case')} {are} left out of the lift"
    if stats.mixed(lift.counts):
        yield "mixed: clearly helps some cases and clearly hurts others"


def _would_repeat_answers(gate: Gate) -> bool:
    """Return whether there are too few runs, but more would only repeat the same answers."""
    decided = gate.outcome != "skipped" and not gate.cell.cut_failures
    # Of copies, a note of the cell says it.
    repeats = gate.lift.repetitive and not gate.cell.copied
    # Where no check holds on what offline quotes, more such cases show nothing either.
    with_skill = gate.lift.with_skill
    all_fail = gate.cell.is_offline and with_skill is not None and not with_skill.pass_rate
    return decided and repeats and not all_fail and gate.verdict == "too few runs"


def _shows_no_difference(gate: Gate) -> bool:
    """Return whether there are too few runs, and no lift from which to tell how many are needed."""
    lift = gate.lift
    decided = gate.outcome != "skipped" and not (gate.cell.cut_failures or lift.skipped_runs)
    return (
        decided
        and gate.verdict == "too few runs"
        and not (lift.repetitive or lift.judged)
        and lift.observed is not None
        and not lift.observed.estimate
    )


def _contradicts_interval(lift: Lift) -> bool:
    """Return whether there is no clear verdict, though the interval excludes 0."""
    if lift.doubt or lift.verdict not in {"too few runs", "no effect"}:
        return False
    return lift.observed is not None and not lift.observed.low <= 0 <= lift.observed.high


def _on_new_prompts(lift: Lift) -> Iterator[str]:
    interval = stats.population_interval(lift.counts)
    enough_cases = sum(case.usable for case in lift.counts) >= _MIN_CASES_FOR_NEW_PROMPTS
    if interval is not None and lift.observed is not None and enough_cases:
        text = f"{points(lift.observed.estimate)} points {bounds(interval)}"
        yield f"on new prompts like these: lift {text}"


def judge_notes(gate: Gate) -> Iterator[str]:
    """Yield the notes about a cell whose verdict rests on a judge."""
    judged = gate.lift.judged
    if judged is None:
        return
    if judged.calibrated:
        yield from _calibrated_notes(gate.lift, judged)
    else:
        yield from _uncalibrated_notes(gate.lift, judged)


def unusable_judgements(gates: Sequence[Gate]) -> Iterator[str]:
    """Yield a line for each judge whose judgements could not all be used."""
    for judge in dict.fromkeys(gate.cell.judge for gate in gates):
        cells = [gate.cell for gate in gates if gate.cell.judge == judge]
        trials = [trial for cell in cells for trial in cell.trials]
        judged = sum(bool(run.statements) for trial in trials for run in trial.runs)
        yield from unusable(judge, [error for trial in trials for error in trial.errors], judged)


def unusable(judge: str, errors: Sequence[str], judged: int) -> Iterator[str]:
    """Yield a line about the judgements of one judge that could not be used, if there are any.

    Args:
        judge: Full name of the judge.
        errors: Why runs are missing, one line each.
        judged: Number of judgements that could be used.
    """
    causes = [cause_of(error) for error in errors if error.startswith(UNUSABLE)]
    if not causes:
        return
    count, not_asked = len(causes), sum(GIVEN_UP in error for error in errors)
    given_up = f", and was not asked about {counted(not_asked, 'more answer')}" if not_asked else ""
    yield (
        f"judge: {judge} gave no usable judgement on {count} of {count + judged} "
        f"answers after two attempts{given_up}; for example, {causes[0]}"
    )


def _calibrated_notes(lift: Lift, judged: Judged) -> Iterator[str]:
    if lift.observed is not None:
        yield f"judged {estimate(lift.observed)}, {lift.corrected}"
    for arm, agreement in (("with", judged.with_skill), ("without", judged.without_skill)):
        if agreement is not None:
            yield f"judge {arm} the skill: {judge_accuracy(agreement)}"
    yield from (f"judge: {note}" for note in judged.notes)
    correction = judged.correction
    if lift.verdict == "too few runs" and correction and correction.judge_share > _MAIN_SHARE:
        yield "too few labels: more of them would narrow the interval most"


def _uncalibrated_notes(lift: Lift, judged: Judged) -> Iterator[str]:
    if text := lift.tipping_point:
        yield f"{lift.verdict} by an uncalibrated judge: {text}"
    elif judged.uncorrected_verdict == "no effect" and lift.verdict == "too few runs":
        yield (
            "an uncalibrated judge cannot show that a skill has no effect: its errors in both arms "
            "shrink every lift"
        )
    if lift.cell.labels is not None:
        yield from (f"judge: {reason}" for reason in judged.reasons)


def notes_by_words(gates: Iterable[Gate]) -> Iterator[str]:
    """Yield that ``offline`` chose by words, which is no figure."""
    if any(gate.cell.is_by_words for gate in gates):
        yield BY_WORDS
