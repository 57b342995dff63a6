"""Early stop: a cell goes ahead one whole round at a time, until its verdict is clear."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from pytest_upskill.grade import Answer, grade
from pytest_upskill.plan import Arm, Trial
from pytest_upskill.stats import CaseCounts

Clear = Callable[[Mapping[Arm, Sequence[CaseCounts]], int, int], bool]
"""Tells by the counts against each of the other arms, rounds done and rounds planned whether a cell
needs no further round.
"""


class Rounds:
    """Opens round after round of every cell; a round is each case in each arm once.

    Lives on one event loop. Whoever asks for a run of a later round waits for the earlier ones, so
    all runs of a round must be asked for before any of the next.

    Args:
        trials: Of all cells; those of one case file and model make a cell.
        clear: When to stop.
    """

    def __init__(self, trials: Iterable[Trial], clear: Clear) -> None:
        members: dict[tuple[str, str], list[Trial]] = {}
        for trial in trials:
            members.setdefault(_key(trial), []).append(trial)
        self._cells = {key: _Cell(of, clear) for key, of in members.items()}

    async def play(self, trial: Trial, run: int, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask in the run's round, unless the rounds before it have made the verdict clear."""
        cell = self._cells[_key(trial)]
        await cell.decided[run].wait()
        if run >= cell.rounds:
            return Answer(completion=None, needless=True)
        passes = runs = 0
        try:
            answer = await ask()
            # Off the loop: a check may take a while, and other answers are coming in.
            result = await asyncio.to_thread(grade, trial, [answer])
            passes, runs = result.passes, len(result.runs)
        finally:
            # Whatever happened: the other trials of the cell wait for this one.
            cell.settle(trial, run, passes, runs)
        return answer


class _Cell:
    """The rounds of one skill on one model."""

    def __init__(self, trials: Sequence[Trial], clear: Clear) -> None:
        self._cases = list(dict.fromkeys(trial.case.id for trial in trials))
        self._clear = clear
        arms = dict.fromkeys(trial.arm for trial in trials)
        self._others: list[Arm] = [arm for arm in arms if arm != "with_skill"]
        self.rounds = trials[0].runs
        """Rounds there will be, as far as is decided."""
        self._waiting = [len(trials)] * self.rounds
        self._passes = Counter[tuple[str, str]]()
        self._runs = Counter[tuple[str, str]]()
        self.decided = [asyncio.Event() for _ in self._waiting]
        self.decided[0].set()

    def settle(self, trial: Trial, run: int, passes: int, runs: int) -> None:
        """Count an answer; after the last of a round, decide about the next."""
        self._passes[trial.case.id, trial.arm] += passes
        self._runs[trial.case.id, trial.arm] += runs
        self._waiting[run] -= 1
        done = run + 1
        if self._waiting[run] or done == len(self._waiting):
            return
        counts: dict[Arm, list[CaseCounts]] = {arm: self._counts(arm) for arm in self._others}
        if self._clear(counts, done, len(self._waiting)):
            self.rounds = done
        for event in self.decided[done:] if self.rounds == done else [self.decided[done]]:
            event.set()

    def _counts(self, against: Arm) -> list[CaseCounts]:
        return [
            CaseCounts(
                self._passes[case, "with_skill"],
                self._runs[case, "with_skill"],
                self._passes[case, against],
                self._runs[case, against],
            )
            for case in self._cases
        ]


def _key(trial: Trial) -> tuple[str, str]:
    return str(trial.skill.case_file), trial.model.label
