"""Early stop: run each cell one round at a time until its verdict is clear, or will not be."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pytest_upskill.checks import CheckError
from pytest_upskill.checks.cpu_limit import CallProcess
from pytest_upskill.figures.lift import Lift
from pytest_upskill.figures.trial_group import TrialGroup
from pytest_upskill.grading.grade import Answer, check_text, grade, text_checks_of, with_left_out
from pytest_upskill.project.grouping import grouped
from pytest_upskill.stats import CaseCounts, early_verdict, look_alpha
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import Arm, Trial

_Key = tuple[Path, Path, str]
"""Case file, folder of the skill, and label of the model."""

WhyStop = Callable[[Sequence[CaseCounts], int, int, float], str | None]
"""Returns why a cell needs no further round, None if it does: see `early_verdict`."""


class Rounds:
    """The rounds of all cells; a round is each case in each arm once.

    Used on one event loop. A run of a later round waits for the earlier rounds, so all runs of a
    round must be started before any of the next.

    Args:
        trials: The trials of all cells; those of one skill, case file and model make a cell.
        why_stop: Returns why a cell needs no further round.
    """

    def __init__(self, trials: Iterable[Trial], why_stop: WhyStop = early_verdict) -> None:
        by_cell = grouped((_key(trial), trial) for trial in trials if trial.early_stop)
        self._cells = {key: _CellRounds(members, why_stop) for key, members in by_cell.items()}
        self._worker = CallProcess()

    async def answer(
        self, trial: Trial, run: int, request_answer: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """Request an answer in its round, unless earlier rounds have made the verdict clear."""
        if not trial.early_stop:
            return await request_answer()
        cell = self._cells[_key(trial)]
        await cell.round_decided[run].wait()
        if run >= cell.rounds_to_run:
            return Answer(completion=None, not_needed=True)
        answer = None
        try:
            answer = await self._check(trial, await request_answer())
        finally:
            # After an exception too: the other trials of the cell wait for this one.
            cell.count(trial, run, answer)
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
            if all(check.is_fast for check in checks):
                return replace(answer, checked=check_text(checks, text))
            # Not on the loop: a check may take long, and other answers arrive meanwhile.
            checked = await asyncio.to_thread(self._worker.call, check_text, checks, text)
        except CheckError as error:
            return replace(answer, error=str(error))
        except RuntimeError:
            # The worker process has ended: the trial's item runs the checks.
            return answer
        return replace(answer, checked=checked)


class _CellRounds:
    """The rounds of one skill on one model."""

    def __init__(self, trials: Sequence[Trial], why_stop: WhyStop) -> None:
        self._trials = {(trial.case.id, trial.arm): trial for trial in trials}
        self._why_stop = why_stop
        self._planned = trials[0].runs
        self.rounds_to_run = self._planned
        """Planned rounds, or fewer once it stops."""
        self.round_decided = [asyncio.Event() for _ in range(self._planned)]
        """For each round, an event that is set once it is decided whether it runs."""
        self.round_decided[0].set()
        self._pending = [len(trials)] * self._planned
        """Number of answers that each round still waits for."""
        self._answers: dict[tuple[str, Arm], list[Answer]] = {key: [] for key in self._trials}

    def count(self, trial: Trial, run: int, answer: Answer | None) -> None:
        """Count an answer, if there is one; after the last of a round, decide about the next."""
        if answer is not None:
            self._answers[trial.case.id, trial.arm].append(answer)
        self._pending[run] -= 1
        done = run + 1
        if self._pending[run] or done == self._planned:
            return
        if self._is_clear(self._lift(), done):
            self.rounds_to_run = done
            for event in self.round_decided[done:]:
                event.set()
        else:
            self.round_decided[done].set()

    def _is_clear(self, lift: Lift, done: int) -> bool:
        """Return whether the verdict is clear: no missing run or cut answer could change it."""
        # Copies show nothing more than one run. Whether the model only repeats itself, or seemed
        # to so far, the rounds to come decide.
        if lift.cell.copied:
            return False
        alpha = look_alpha(lift.look)
        (why, *others) = {
            self._why_stop(counts, done, self._planned, alpha) for counts in lift.possible_counts
        }
        return bool(why and not others)

    def _lift(self) -> Lift:
        """Return the lift so far."""
        first, *_ = self._trials.values()
        cell = TrialGroup(
            path=str(first.skill.case_file),
            skill=first.skill.name,
            model=first.model.label,
            resolved=first.model.resolved,
            gate=first.skill.gate,
            planned=len(self._trials),
            trials=tuple(self._graded(*key) for key in self._trials if self._answers[key]),
        )
        return Lift(cell)

    def _graded(self, case: str, arm: Arm) -> TrialResult:
        """Return the result of a trial so far."""
        arms: tuple[Arm, Arm] = "with_skill", "without_skill"
        of_case = chain.from_iterable(self._answers.get((case, each), ()) for each in arms)
        return grade(self._trials[case, arm], with_left_out(self._answers[case, arm], of_case))


def _key(trial: Trial) -> _Key:
    # Skills may share a case file, and a skill may have two.
    return trial.skill.case_file, trial.skill.folder, trial.model.label
