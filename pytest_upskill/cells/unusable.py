"""Judgements that could not be used, in one line with the cure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pytest_upskill.cells.cell import Cell
from pytest_upskill.checks.judge import CUT_OFF, NO_EVIDENCE, UNUSABLE

_STRONGER = "choose a stronger model with --upskill-judge"
_NO_FORMAT = f"it does not reply in JSON as asked: {_STRONGER}"
_MISQUOTED = f"it quotes what the answer does not say: {_STRONGER}"
_MOSTLY = {
    CUT_OFF: "its reply is cut off: raise the limit with --upskill-param judge:max_tokens=16384",
    **dict.fromkeys(NO_EVIDENCE, _MISQUOTED),
}
"""What a reason that begins like this means, and its cure."""


def unusable_judgements(cells: Iterable[Cell]) -> Iterator[str]:
    """Yield a line for each judge whose judgements could not all be used."""
    judges: dict[str, list[Cell]] = {}
    for cell in cells:
        judges.setdefault(cell.judge, []).append(cell)
    for judge, of in judges.items():
        trials = [trial for cell in of for trial in cell.trials]
        judged = sum(bool(run.statements) for trial in trials for run in trial.runs)
        yield from unusable(judge, [error for trial in trials for error in trial.errors], judged)


def unusable(judge: str, errors: Iterable[str], judged: int) -> Iterator[str]:
    """Yield a line about the judgements of one judge that could not be used, if there are any.

    Args:
        judge: Full name of the judge.
        errors: Why runs are missing, one line each.
        judged: Number of judgements that could be used.
    """
    reasons = [error.removeprefix(UNUSABLE) for error in errors if error.startswith(UNUSABLE)]
    if not reasons:
        return
    meanings = Counter(
        next((said for start, said in _MOSTLY.items() if reason.startswith(start)), _NO_FORMAT)
        for reason in reasons
    )
    ((meaning, _),) = meanings.most_common(1)
    yield (
        f"judge: {judge} gave no usable judgement on {len(reasons)} of {len(reasons) + judged} "
        f"answers after two attempts; mostly because {meaning}"
    )
