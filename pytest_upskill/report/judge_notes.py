"""Notes about a judge: what it decided in a cell, and what was no judgement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_upskill.cells.cell import Cell
from pytest_upskill.cells.gate import Gate
from pytest_upskill.cells.judged import Judged
from pytest_upskill.cells.wording import (
    JUDGED_PAST,
    corrected,
    estimate,
    judge_accuracy,
    tipping_point,
)
from pytest_upskill.checks.judge import GIVEN_UP, UNUSABLE, meaning_of
from pytest_upskill.sanitize.plural import counted

_MAIN_SHARE = 0.5
"""Share of an interval's squared width from which on more labels narrow it most."""


def judge_notes(gate: Gate) -> Iterator[str]:
    """Yield the notes about a cell whose verdict rests on a judge."""
    cell, judged = gate.cell, gate.cell.judged
    if judged is None:
        return
    if gate.verdict == "regression":
        yield JUDGED_PAST
    if judged.calibrated:
        yield from _calibrated_notes(cell, judged)
    else:
        yield from _uncalibrated_notes(cell, judged)


def unusable_judgements(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a line for each judge whose judgements could not all be used."""
    for judge in dict.fromkeys(cell.judge for cell in cells):
        trials = [trial for cell in cells if cell.judge == judge for trial in cell.trials]
        judged = sum(bool(run.statements) for trial in trials for run in trial.runs)
        yield from unusable(judge, [error for trial in trials for error in trial.errors], judged)


def unusable(judge: str, errors: Sequence[str], judged: int) -> Iterator[str]:
    """Yield a line about the judgements of one judge that could not be used, if there are any.

    Args:
        judge: Full name of the judge.
        errors: Why runs are missing, one line each.
        judged: Number of judgements that could be used.
    """
    meanings = Counter(meaning_of(error) for error in errors if error.startswith(UNUSABLE))
    if not meanings:
        return
    count, not_asked = meanings.total(), sum(GIVEN_UP in error for error in errors)
    given_up = f", and was not asked about {counted(not_asked, 'more answer')}" if not_asked else ""
    ((meaning, _),) = meanings.most_common(1)
    yield (
        f"judge: {judge} gave no usable judgement on {count} of {count + judged} "
        f"answers after two attempts{given_up}; mostly because {meaning}"
    )


def _calibrated_notes(cell: Cell, judged: Judged) -> Iterator[str]:
    if cell.lift is not None:
        yield f"judged {estimate(cell.lift)}, {corrected(cell)}"
    for arm, agreement in (("with", judged.with_skill), ("without", judged.without_skill)):
        if agreement is not None:
            yield f"judge {arm} the skill: {judge_accuracy(agreement)}"
    yield from (f"judge: {note}" for note in judged.notes)
    correction = judged.correction
    if cell.verdict == "too few runs" and correction and correction.judge_share > _MAIN_SHARE:
        yield "too few labels: more of them would narrow the interval most"


def _uncalibrated_notes(cell: Cell, judged: Judged) -> Iterator[str]:
    if text := tipping_point(cell):
        yield f"{cell.verdict} by an uncalibrated judge: {text}"
    elif judged.uncorrected_verdict == "no effect" and cell.verdict == "too few runs":
        yield (
            "an uncalibrated judge cannot show that a skill has no effect: its errors in both arms "
            "shrink every lift"
        )
    if cell.labels is not None:
        yield from (f"judge: {reason}" for reason in judged.reasons)
