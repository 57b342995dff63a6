"""How a command runs trials and asks its teacher, what that costs, and how a reply is read."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from pytest_upskill.answers.budget import Budget
from pytest_upskill.answers.estimate import CostForecast, forecast
from pytest_upskill.answers.progress import Tally, progress_parts
from pytest_upskill.answers.recordings import recording_name
from pytest_upskill.answers.resources import WorkError, Workplace
from pytest_upskill.answers.run import recorded_steps
from pytest_upskill.answers.service import Service
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.checks.blocks import blocks
from pytest_upskill.figures.wording import fit_parts
from pytest_upskill.grading.grade import Answer, check_text, grade, sandboxed_of, text_checks_of
from pytest_upskill.models import Completion, Model
from pytest_upskill.project.files import ANSWERS
from pytest_upskill.project.messages import counted, safe_line
from pytest_upskill.teacher.files import Consent, Drafts
from pytest_upskill.trials.result import TrialResult
from pytest_upskill.trials.trial import TRIGGER_ARMS, Arm, Trial, plan

_TICK = 0.2
"""Seconds between two updates of the live line, and at most until Ctrl-C is noticed."""
MAX_TOKENS, RAISED_TOKENS = 8192, 32_768
"""Maximum output tokens of a teacher's reply, and of its second try if it was cut."""

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818  a state from which the same command continues
    """A command that ended early; everything so far is recorded. The message says why."""


class NotShown(Exception):  # noqa: N818  a decision, not an error of this program
    """Nothing shows that a proposal is better; the message says why."""


@dataclass(kw_only=True, eq=False)
class Engine:
    """Runs a command's trials within its limits, and counts what they cost."""

    workplace: Workplace
    """The hosts, recordings and settings of the session."""
    state: Path
    """The project's ``.upskill`` folder."""
    teacher: Model
    students: tuple[Model, ...]
    """Empty if the command needs none."""
    consent: Consent
    max_cost: float
    """Dollars."""
    max_answers: int | None
    """Most answers to request; None for no limit."""
    dry_run: bool
    typed: str
    """The command as it was typed."""
    drafts: Drafts = field(init=False)
    """The folder of the command, once its skill is known."""

    def __post_init__(self) -> None:
        self._out = sys.stderr
        self.shows_blocks = (self._out.encoding or "").lower().startswith("utf")
        """Whether the output can show block characters."""
        self._columns = shutil.get_terminal_size().columns if self._out.isatty() else 0
        """Width of the terminal; 0 for a log, which has no live line."""
        self._counted_answers = 0
        self._money_left = self.max_cost

    def say(self, *lines: str) -> None:
        """Print lines."""
        self._out.writelines(f"{safe_line(line)}\n" for line in lines)
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
            model=self.teacher,
            arm="without_skill",
            skill_block="",
            runs=1,
            first_run=run,
            max_tokens=self.teacher.parameters.max_tokens or MAX_TOKENS,
        )

    def with_retry(self, question: Trial) -> list[Trial]:
        """Return a question, and once more with a higher limit unless the user has set one."""
        if self.teacher.parameters.max_tokens:
            return [question]
        return [question, replace(question, max_tokens=RAISED_TOKENS)]

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
        all_arms = plan(
            replace(skill, cases=tuple(cases), before=None),
            self.students if models is None else models,
            runs=runs,
            max_tokens=self.workplace.max_tokens,
            catalogues=self.workplace.catalogues() if arm in TRIGGER_ARMS else None,
        )
        return [replace(trial, first_run=first_run) for trial in all_arms if trial.arm == arm]

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
        self._counted_answers += self.estimate(trials).to_send
        if self.max_answers is not None and self._counted_answers > self.max_answers:
            would = f"{self._counted_answers} answers would be requested"
            raise Stopped(f"--max-answers: {would}, over {self.max_answers}")
        # `check_models` has seen that models without a price cost nothing or are limited otherwise.
        resources = self.workplace.resources
        budget = Budget(self._money_left, resources.budget.prices, allow_unpriced=True)
        service = Service(
            {str(index): trial for index, trial in enumerate(trials)},
            self.workplace.hosts(dict.fromkeys(trial.model for trial in trials)),
            replace(resources, budget=budget),
        )
        try:
            runs = [service.run_results(str(place)) for place in range(len(trials))]
            self._wait([*chain.from_iterable(runs)], purpose)
            answers = [[future.result() for future in of_trial] for of_trial in runs]
        except CancelledError:
            raise Stopped("the requests were cancelled") from None
        finally:
            service.stop()
            if budget.left is not None:
                self._money_left = budget.left
            self._list_answers(trials)
        all_answers = [*chain.from_iterable(answers)]
        missing = [answer for answer in all_answers if answer.completion is None or answer.error]
        if any(answer.why_not_sent for answer in missing):
            raise Stopped(f"--max-cost: further requests could exceed ${self.max_cost:g}: raise it")
        if missing:
            count = f"{len(missing)} of {counted(len(all_answers), 'answer')}"
            raise Stopped(f"no reply for {count}: {missing[0].error}")
        return answers

    def ask(self, question: Trial, purpose: str, kept_as: str = "") -> str:
        """Return the teacher's complete reply to a question, with more room if it was cut at first.

        Args:
            question: The question.
            purpose: What it is for, as the live line shows it.
            kept_as: The file of the drafts that keeps the reply; "" for none.

        Raises:
            Refused: The reply is empty, was cut off, or is a refusal.
            Stopped: It is missing, or a limit would be passed.
        """
        for attempt in self.with_retry(question):
            ((answer,),) = self.run([attempt], purpose)
            completion = answer.completion
            if completion and completion.stop_reason != "max_tokens":
                break
        assert completion is not None
        if kept_as:
            self.drafts.write(kept_as, completion.text)
        return complete_text(completion)

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

    def failures(self, case: Case, text: str) -> list[str]:
        """Return what fails of the checks of a case that need no model, on a text.

        Raises:
            CheckError: A check cannot be decided.
        """
        results = [*check_text(text_checks_of(case), text)]
        if sandboxed := sandboxed_of(case):
            compilers = self.workplace.resources.compilers()
            for check in sandboxed:
                results += compilers.decide(check, text)
        return [result.message for result in results if not result.passed]

    def _list_answers(self, trials: Iterable[Trial]) -> None:
        """List the recorded answers of trials in the session's folder: pruning keeps them."""
        cache, names = self.workplace.resources.cache, set(self.drafts.read(ANSWERS).split())
        for trial in trials:
            url = self.workplace.hosts([trial.model])[trial.model].url
            # A choice alone has further requests, which depend on the answers before them.
            load = partial(cache.load, url=url) if trial.chooses else lambda _: None
            for run in range(trial.runs):
                steps = recorded_steps(trial, run, load)
                names.update(recording_name(step, url) for step, _ in steps)
        self.drafts.write(ANSWERS, "\n".join(sorted(names)))

    def _wait(self, futures: Sequence[Future[Answer]], purpose: str) -> None:
        tally, resources = Tally(futures), self.workplace.resources
        pending = set(futures)
        try:
            while pending:
                _, pending = wait(pending, timeout=_TICK)
                tally.count()
                self._show(progress_parts(tally, resources.activity, resources.bill.all, purpose))
        finally:
            self._show()

    def _show(self, parts: Iterable[str] = ()) -> None:
        """Show as many parts as fit in a terminal's last line, in place of those before."""
        if self._columns:
            self._out.write(f"\r\x1b[K{fit_parts(parts, self._columns - 1)}")
            self._out.flush()


def check_models(engine: Engine) -> None:
    """Check that the models answer single requests and that their cost can be limited.

    Raises:
        WorkError: A model is an agent; or has no price, and the number of answers is not limited.
    """
    teacher, students = engine.teacher, engine.students
    prices = engine.workplace.resources.budget.prices
    for model in dict.fromkeys((teacher, *students)):
        if not model.is_language_model or model.agent:
            raise WorkError(f"{model.label} gives no single answers: name a language model")
        is_free = model.is_on_own_network or prices.has_price(model)
        if engine.max_answers is None and not is_free:
            raise WorkError(f"--max-cost: {prices.problem(model)}, or add --max-answers N")


class Refused(Exception):  # noqa: N818  a decision, not an error of this program
    """A teacher's proposal is refused; the message, one line, is for the teacher and the user."""


def complete_text(completion: Completion) -> str:
    """Return the text of a complete reply.

    Raises:
        Refused: The reply is empty, was cut off, or is a refusal.
    """
    if completion.stop_reason == "max_tokens":
        raise Refused("the reply was cut: raise its limit with --teacher-param max_tokens=N")
    if completion.stop_reason == "refusal":
        raise Refused("the teacher refused to reply")
    if not completion.text.strip():
        raise Refused("the reply is empty")
    return completion.text


def read_json_reply(text: str) -> Any:
    """Read the JSON of a reply: its last fenced block that is JSON, else from brace to brace.

    Raises:
        Refused: There is none.
    """
    fenced = [block.code for block in blocks(text)]
    bare = text[text.find("{") : text.rfind("}") + 1]
    for candidate in (*reversed(fenced), text, bare):
        # It refuses half of a surrogate pair, which could not be written into a file.
        with suppress(ValueError):
            if isinstance(value := from_json(candidate), dict | list):
                return value
    raise Refused("the reply has no JSON")


def read_part(reply: str, key: str, kind: Any = list[Any]) -> Any:
    """Return the part of a reply that stands alone, or under a key.

    Args:
        reply: The text of the reply.
        key: The key.
        kind: The type to validate as.

    Raises:
        Refused: There is none, or it is malformed.
    """
    value = read_json_reply(reply)
    return validate_as(kind, value.get(key) if isinstance(value, dict) else value, key)


def validate_as(kind: type[T], value: object, what: str = "") -> T:
    """Return a part of a reply as a value of a type.

    Args:
        kind: The type to validate as.
        value: The parsed JSON.
        what: Its name in the message.

    Raises:
        Refused: It is malformed.
    """
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        parts = (f"malformed {what}".rstrip(), ".".join(map(str, first["loc"])), first["msg"])
        raise Refused(": ".join(filter(None, parts))) from None
