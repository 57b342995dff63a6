"""Excerpts of answers for the HTML page: grouped, cut, and compared line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Literal

from pytest_upskill.figures.cases import CaseLine
from pytest_upskill.trials.result import RunResult, TrialResult

DiffLine = tuple[Literal["with", "without", "both", "gap"], str]
"""In which answers a line is, and the line."""


def alike(trial: TrialResult) -> list[tuple[Sequence[int], RunResult]]:
    """Return the numbers, from 1, of runs with the same answer and results, and the first one."""
    groups: dict[object, list[int]] = {}
    for number, run in enumerate(trial.runs, 1):
        groups.setdefault((run.completion.text, run.checks, run.ending), []).append(number)
    return [(numbers, trial.runs[numbers[0] - 1]) for numbers in groups.values()]


def shorten(text: str, limit: int, left_out: int = 0) -> str:
    """Return a text cut to a limit, with the number of characters that are missing.

    Args:
        text: Model output, of any length.
        limit: Characters to keep.
        left_out: Characters already cut from its end.
    """
    more = max(0, len(text) - limit) + left_out
    return f"{text[:limit]}\n[\u2026 {more} more characters]" if more else text


def arm_difference(case: CaseLine, limit: int) -> list[DiffLine]:
    """Return the line differences between the typical answers of both arms; none if equal.

    Args:
        case: A case in both arms.
        limit: Characters of each answer to compare.
    """
    with_, without = _typical(case.with_skill), _typical(case.without_skill)
    if with_ is None or without is None or with_ == without:
        return []
    return list(_lines(without[:limit], with_[:limit]))


def _typical(trial: TrialResult | None) -> str | None:
    """Return the answer with the median number of passed checks, None without a valid run."""
    if trial is None or not trial.runs:
        return None
    runs = sorted(trial.runs, key=lambda run: run.held)
    return runs[len(runs) // 2].completion.text


def _lines(before: str, after: str) -> Iterator[DiffLine]:
    lines = unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm="")
    kinds: dict[str, Literal["with", "without", "both", "gap"]] = {
        "+": "with",
        "-": "without",
        " ": "both",
        "@": "gap",
    }
    for number, line in enumerate(lines):
        # The first two lines are file names.
        if number > 1:
            kind = kinds[line[0]]
            yield kind, "\u22ef" if kind == "gap" else line[1:]
