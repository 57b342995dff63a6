"""Run trials for a teacher: in stages, within limits, and resumable at any moment."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from dataclasses import replace

from pytest_upskill.answers.estimate import CostForecast, forecast
from pytest_upskill.answers.service import Policy, Service
from pytest_upskill.answers.tally import CostTally, parts
from pytest_upskill.answers.workplace import Workplace
from pytest_upskill.cells.wording import wrap
from pytest_upskill.checks import CheckError, CheckResult
from pytest_upskill.completion import Completion
from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.grading.grade import Answer, grade, sandboxed_of, text_checks_of
from pytest_upskill.model import Model
from pytest_upskill.sanitize.plural import counted
from pytest_upskill.sanitize.safe_text import safe_line
from pytest_upskill.spending.budget import Budget
from pytest_upskill.teacher.work.live_line import LiveLine
from pytest_upskill.teacher.work.reply import MAX_TOKENS
from pytest_upskill.teacher.work.terms import Terms
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import Arm, Trial, plan

_TICK = 0.2
"""Seconds between two updates of the live line, and at most until Ctrl-C is noticed."""


class Stopped(Exception):  # noqa: N818  a state from which the same command continues
    """A command that ended early; everything so far is recorded. The message says why."""


class Engine:
    """Runs a command's trials within its terms, and counts what they cost.

    Args:
        workplace: The hosts, recordings and settings of the session.
        terms: The models, the limits and the user's consent.
    """

    def __init__(self, workplace: Workplace, terms: Terms) -> None:
        self.workplace = workplace
        self.terms = terms
        self._out = sys.stderr
        self._line = LiveLine(self._out)
        self._counted_answers = 0
        self._money_left = terms.max_cost

    @property
    def cost_usd(self) -> float:
        """Dollars that answers have cost in this process; replayed answers cost nothing."""
        return sum(answer.cost_usd or 0.0 for answer in self.workplace.resources.bill.answers)

    @property
    def paid_answers(self) -> int:
        """Number of answers that were paid for in this process."""
        return len(self.workplace.resources.bill.answers)

    @property
    def can_show_blocks(self) -> bool:
        """Whether the output can show block characters."""
        return (self._out.encoding or "").lower().replace("-", "") == "utf8"

    def say(self, *lines: str) -> None:
        """Print lines; a terminal gets them wrapped, except quotes and diffs."""
        width = self._line.columns
        for text in map(safe_line, lines):
            rows = wrap(text, width) if width and text[:1].isalpha() else [text]
            self._out.writelines(f"{row}\n" for row in rows)
        self._out.flush()

    def question(self, skill: Skill, name: str, prompt: str, *, run: int = 0) -> Trial:
        """Return a question to the teacher: a trial without skill and without checks.

        Args:
            skill: The skill that it is about.
            name: The name of the question in its recording.
            prompt: The whole question.
            run: Index of the run.
        """
        return Trial(
            skill=skill,
            case=Case(id=name, input=prompt, checks=()),
            model=self.terms.teacher,
            arm="without_skill",
            skill_block="",
            runs=1,
            first_run=run,
            max_tokens=MAX_TOKENS,
        )

    def trials(
        self,
        skill: Skill,
        cases: Iterable[Case],
        arm: Arm,
        *,
        runs: int,
        first_run: int = 0,
        models: Sequence[Model] | None = None,
    ) -> list[Trial]:
        """Return the trials of cases of a skill in one arm; by default on the students."""
        both_arms = plan(
            replace(skill, cases=tuple(cases), before=None),
            self.terms.students if models is None else models,
            runs=runs,
            max_tokens=self.workplace.max_tokens,
        )
        return [replace(trial, first_run=first_run) for trial in both_arms if trial.arm == arm]

    def estimate(self, trials: Iterable[Trial]) -> CostForecast:
        """Return what the trials would request, and its maximum cost."""
        trials = list(trials)
        hosts = self.workplace.hosts(dict.fromkeys(trial.model for trial in trials))
        return forecast(trials, hosts, self.workplace.resources)

    def run(self, trials: Sequence[Trial], purpose: str) -> list[list[Answer]]:
        """Return the answers to every run of every trial.

        Args:
            trials: What to run.
            purpose: What they are for, as the live line shows it.

        Raises:
            Stopped: An answer is missing, or a limit would be passed.
        """
        if not trials:
            return []
        self._count_answers(trials)
        prices = self.workplace.resources.prices
        budget = Budget(self._money_left, prices, allow_unpriced=self.terms.max_answers is not None)
        service = Service(
            {str(index): trial for index, trial in enumerate(trials)},
            self.workplace.hosts(dict.fromkeys(trial.model for trial in trials)),
            replace(self.workplace.resources, budget=budget),
            Policy(concurrency=self.workplace.concurrency),
        )
        try:
            runs = [service.run_results(str(place)) for place in range(len(trials))]
            self._wait([future for of_trial in runs for future in of_trial], purpose)
            answers = [[future.result() for future in of_trial] for of_trial in runs]
        except CancelledError:
            raise Stopped("the requests were cancelled") from None
        finally:
            with suppress(ExceptionGroup):
                service.stop()
            if budget.left is not None:
                self._money_left = budget.left
        self._check_complete(answers)
        return answers

    def ask(self, question: Trial, purpose: str) -> Completion:
        """Return the teacher's answer to a question, unchecked.

        Raises:
            Stopped: It is missing, or a limit would be passed.
        """
        ((answer,),) = self.run([question], purpose)
        assert answer.completion is not None
        return answer.completion

    def results(self, trials: Sequence[Trial], purpose: str) -> list[TrialResult]:
        """Return the graded results of trials.

        Raises:
            Stopped: An answer is missing or cannot be graded, or a limit would be passed.
        """
        graded = []
        for trial, answers in zip(trials, self.run(trials, purpose), strict=True):
            result = grade(trial, answers, self.workplace.decide(trial.case))
            if result.errors:
                raise Stopped(result.errors[0])
            graded.append(result)
        return graded

    def check_by_code(self, case: Case, text: str) -> list[CheckResult]:
        """Check a text by the checks of a case that need no model, and return the results.

        Raises:
            CheckError: A check cannot be decided.
        """
        results = [check.check(text) for check in text_checks_of(case)]
        if sandboxed := sandboxed_of(case):
            from pytest_upskill.compile import CannotCompile

            compilers = self.workplace.resources.compilers()
            try:
                for check in sandboxed:
                    results += compilers.decide(check, text)
            except CannotCompile as error:
                raise CheckError(str(error)) from None
        return results

    def _count_answers(self, trials: Sequence[Trial]) -> None:
        """Count the answers that will be requested, and stop if they exceed the limit."""
        self._counted_answers += self.estimate(trials).to_send
        limit = self.terms.max_answers
        if limit is not None and self._counted_answers > limit:
            raise Stopped(
                f"--max-answers: {self._counted_answers} answers would be requested, over {limit}"
            )

    def _wait(self, futures: Sequence[Future[Answer]], purpose: str) -> None:
        tally, activity = CostTally(futures), self.workplace.resources.activity
        pending = set(futures)
        try:
            while pending:
                _, pending = wait(pending, timeout=_TICK)
                tally.count()
                self._line.show(parts(tally, activity, purpose))
        finally:
            self._line.clear()

    def _check_complete(self, answers: Iterable[Iterable[Answer]]) -> None:
        all_answers = [answer for of_trial in answers for answer in of_trial]
        missing = [answer for answer in all_answers if answer.completion is None or answer.error]
        if not missing:
            return
        if any(each.why_not_sent for each in missing):
            raise Stopped(f"--max-cost: further requests could exceed ${self.terms.max_cost:g}")
        verb = "is" if len(missing) == 1 else "are"
        count = f"{len(missing)} of {counted(len(all_answers), 'answer')} {verb} missing"
        raise Stopped(f"{count}: {missing[0].error}")
