"""Early stop: run each cell one round at a time until its verdict is clear."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_upskill.checks import CheckError, Contains, ContainsAny, NotContains
from pytest_upskill.checks.cpu_limit import Worker
from pytest_upskill.grading.grade import Answer, check_text, grade, text_checks_of
from pytest_upskill.stats import CaseCounts
from pytest_upskill.trials.trial import Trial

_Key = tuple[Path, Path, str]
"""Case file, folder of the skill, and label of the model."""

Clear = Callable[[Sequence[CaseCounts], int, int], bool]
"""Returns by its counts, rounds done and rounds planned whether a cell needs no further round."""


_SWIFT = (Contains, ContainsAny, NotContains)
"""Checks that need no limit on their time."""


class Rounds:
    """The rounds of all cells; a round is each case in each arm once.

    Lives on one event loop. Whoever asks for a run of a later round waits for the earlier ones, so
    all runs of a round must be asked for before any of the next.

    Args:
        trials: Of all cells; those of one skill, case file and model make a cell.
        clear: When to stop.
    """

    def __init__(self, trials: Iterable[Trial], clear: Clear) -> None:
        members: dict[_Key, list[Trial]] = {}
        for trial in trials:
            if not trial.early_stop:
                continue
            members.setdefault(_key(trial), []).append(trial)
        self._cells = {key: _Cell(of, clear) for key, of in members.items()}
        self._worker = Worker()

    async def play(self, trial: Trial, run: int, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Request an answer in its round, unless earlier rounds have made the verdict clear."""
        if not trial.early_stop:
            return await ask()
        cell = self._cells[_key(trial)]
        await cell.decided[run].wait()
        if run >= cell.rounds:
            return Answer(completion=None, not_needed=True)
        passes = runs = 0
        try:
            answer = await self._check(trial, await ask())
            result = grade(trial, [answer])
            passes, runs = result.passes, len(result.runs)
        finally:
            # Whatever happened: the other trials of the cell wait for this one.
            cell.settle(trial, run, passes, runs)
        return answer

    def close(self) -> None:
        """End the process that checks answers."""
        self._worker.close()

    async def _check(self, trial: Trial, answer: Answer) -> Answer:
        """Check the text of an answer; the trial's item reuses the result."""
        checks = text_checks_of(trial.case)
        if answer.completion is None or answer.error or not checks:
            return answer
        text = answer.completion.text
        try:
            if all(isinstance(check, _SWIFT) for check in checks):
                return replace(answer, checked=check_text(checks, text))
            # Off the loop: a check may take a while, and other answers are coming in.
            checked = await asyncio.to_thread(self._worker.call, check_text, checks, text)
        except CheckError as error:
            return replace(answer, error=str(error))
        except RuntimeError:
            # The process has ended: the item makes the checks.
            return answer
        return replace(answer, checked=checked)


class _Cell:
    """The rounds of one skill on one model."""

    def __init__(self, trials: Sequence[Trial], clear: Clear) -> None:
        # As in the verdict, cases that the skill's text was chosen by do not count.
        self._cases = list(dict.fromkeys(t.case.id for t in trials if not t.case.train))
        self._clear = clear
        self.rounds = trials[0].runs
        """Rounds there will be, as far as is decided."""
        self._waiting = [len(trials)] * self.rounds
        self._passes = Counter[tuple[str, str]]()
        self._runs = Counter[tuple[str, str]]()
        self.decided = [asyncio.Event() for _ in self._waiting]
        self.decided[0].set()

    def settle(self, trial: Trial, run: int, passes: int, runs: int) -> None:
        """Count an answer; after the last of a round, decide whether to run the next."""
        self._passes[trial.case.id, trial.arm] += passes
        self._runs[trial.case.id, trial.arm] += runs
        self._waiting[run] -= 1
        done = run + 1
        if self._waiting[run] or done == len(self._waiting):
            return
        if self._clear(self._counts(), done, len(self._waiting)):
            self.rounds = done
        for event in self.decided[done:] if self.rounds == done else [self.decided[done]]:
            event.set()

    def _counts(self) -> list[CaseCounts]:
        return [
            CaseCounts(
                self._passes[case, "with_skill"],
                self._runs[case, "with_skill"],
                self._passes[case, "without_skill"],
                self._runs[case, "without_skill"],
            )
            for case in self._cases
        ]


def _key(trial: Trial) -> _Key:
    # Skills may share a case file, and a skill may have two.
    return trial.skill.case_file, trial.skill.folder, trial.model.label
