"""What a command decided: its ``decision.json``, its last lines in a terminal, and its page."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.skill import Case
from pytest_upskill.figures.wording import money, p_text, percent
from pytest_upskill.project.files import DRAFTS, display_path
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import counted, listed
from pytest_upskill.report.files.html import environment
from pytest_upskill.teacher.acceptance import split_cases
from pytest_upskill.teacher.additions import marked_diff, new_code
from pytest_upskill.teacher.cases import Kept, keep_cases
from pytest_upskill.teacher.engine import Engine, NotShown, Refused, Stopped, check_models
from pytest_upskill.teacher.files import COMMENTS, Drafts
from pytest_upskill.teacher.versions import Settings, Task
from pytest_upskill.trials.result import TrialResult

DRY_RUN = "--dry-run: nothing was requested"
"""The reason if the user wanted only the plan."""

NO_EVAL = "--no-eval: nothing was measured"
"""The reason if the user wanted a skill without cases."""

_RESUME_HINT = "everything so far is recorded: the command continues from here"

_SHOWN_LINES = 12
"""Lines of a source that are shown before it is sent."""

Decision = Literal["accepted", "not shown", "refused", "stopped"]
"""What a command decided; ``not shown``: nothing showed that the proposal is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """What a command decided, and by what; the fields of ``decision.json``."""

    command: str
    decision: Decision = "stopped"
    reason: str = "interrupted"
    skill: str
    teacher: str = ""
    students: tuple[str, ...] = ()
    growth: int = 0
    """Tokens by which the new version is longer than the old one."""
    look: int | None = None
    """Number of the look at the hold-out; None if there was none."""
    p: float | None = None
    alpha: float | None = None
    train: tuple[str, ...] = ()
    """Ids of the cases by which the version was chosen."""
    holdout: tuple[str, ...] = ()
    """Ids of the cases that decided."""
    kept: tuple[str, ...] = ()
    """Ids of the cases that were kept or used."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Reasons by the id of a case that was dropped or left out."""
    candidates: tuple[Mapping[str, Any], ...] = ()
    """Versions of the skill that were tried: number, refusal or passes on the train cases."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Pass rates and lift on the held-out cases by student."""
    cost_usd: float | None = 0.0
    """Dollars that this process paid; None if no answer has a price. Replayed answers are free."""
    asked: int = 0
    """Number of answers that this process requested."""
    unpriced: int = 0
    """How many of these have no known price."""
    applied: bool = False
    """Whether the skill's folder was changed."""
    next_step: str = ""
    """What to do next, if the decision does not tell."""


_VERSIONS = {
    "without": "without the skill",
    "old": "with the old version",
    "draft": "with the first draft",
    "new": "with the new version",
}
"""The versions of a skill, the first of which is none, and what they are called on the page."""


@dataclass(kw_only=True)
class Work:
    """A command while it runs, and what a person should see of it."""

    engine: Engine
    settings: Settings
    outcome: CommandOutcome
    """What is decided so far."""
    kept: Kept = field(default_factory=Kept)
    """The cases that were proposed."""
    plan: Sequence[str] = ()
    """The most answers that it could request."""
    old: str = ""
    """The ``SKILL.md`` as it was, "" for a new skill."""
    new: str = ""
    cases: Sequence[Case] = ()
    results: dict[tuple[str, str], list[TrialResult]] = field(default_factory=dict)
    """Results by the case's id and one of ``_VERSIONS``."""

    @classmethod
    def start(
        cls, engine: Engine, settings: Settings, command: str, skill: str, *texts: str
    ) -> Self:
        """Return a command that has not decided anything; ``texts`` are those that it improves."""
        models = (engine.teacher.resolved, *sorted(each.resolved for each in engine.students))
        identity = (*models, command, repr(settings), *texts)
        engine.drafts = Drafts(engine.state / DRAFTS, skill, *identity)
        outcome = CommandOutcome(command=command, skill=skill)
        return cls(engine=engine, settings=settings, outcome=outcome)

    def note(self, **fields: Any) -> None:
        """Change fields of the outcome."""
        self.outcome = replace(self.outcome, **fields)

    def note_cases(self, cases: Sequence[Case], dropped: Mapping[str, str]) -> None:
        """Note the ids of the cases, and why others were dropped."""
        parts = dict(zip(("train", "holdout", "kept"), (*split_cases(cases), cases), strict=True))
        ids = {name: tuple(case.id for case in part) for name, part in parts.items()}
        self.note(**ids, dropped=dropped)

    def keep_cases(self, task: Task) -> list[Case]:
        """Have the teacher propose cases, and return those that are kept."""
        self.kept = keep_cases(self.engine, task)
        text = json.dumps({"cases": self.kept.entries}, indent=2)
        self.engine.drafts.write("cases.json", f"{text}\n")
        return self.kept.cases

    def add(self, version: str, results: Iterable[TrialResult]) -> None:
        """Add the results of a version."""
        for result in results:
            self.results.setdefault((result.case, version), []).append(result)

    def versions(self, case: str) -> Mapping[str, Sequence[TrialResult]]:
        """Return the results of a case by version, from none to the new one."""
        found = ((version, self.results.get((case, version), ())) for version in _VERSIONS)
        return {version: results for version, results in found if results}

    @property
    def failing(self) -> list[str]:
        """Ids of the cases that the last version still fails in half of its runs or more."""
        last = "new" if self.new else "old"
        found = ((name, each) for (name, version), each in self.results.items() if version == last)
        return [name for name, each in found if any(not result.passed for result in each)]

    @property
    def diff(self) -> list[str]:
        """The lines of a diff of the versions, marked where they say what a check looks for."""
        return [*marked_diff(self.old, self.new, self.cases)] if self.new else []

    def run(self, plan: Iterable[str], run: Callable[[], None]) -> CommandOutcome:
        """Print the plan, run the command unless this is a dry run, and record its outcome.

        Args:
            plan: The plan's lines.
            run: Notes the outcome; it may raise `Stopped`, `Refused` or `NotShown`.

        Raises:
            WorkError: The user does not agree, or ``run`` raised it; that is recorded.
        """
        engine = self.engine
        check_models(engine)
        if not engine.dry_run:
            self._check_sources()
        self.plan = [*plan]
        engine.say(*self.plan)
        if engine.dry_run:
            return replace(self.outcome, reason=DRY_RUN)
        try:
            run()
        except Refused as refused:
            self.note(decision="refused", reason=str(refused))
        except NotShown as reason:
            self.note(decision="not shown", reason=str(reason))
        except Stopped as stopped:
            self.note(reason=str(stopped), next_step=_RESUME_HINT)
        except (WorkError, OSError, KeyboardInterrupt) as error:
            self.note(decision="stopped", reason=str(error) or "interrupted")
            self._write()
            engine.say(_RESUME_HINT)
            raise
        return self.record()

    def _check_sources(self) -> None:
        """Show what will be sent of the sources, write it into the drafts, and ask for consent.

        Raises:
            WorkError: The user did not agree.
        """
        engine, sources = self.engine, self.settings.sources
        consent, say = engine.consent, engine.say
        for number, source in enumerate(sources, 1):
            file = engine.drafts.write(f"source-{number}.md", source.text)
            lines = source.text.splitlines()
            say(str(source), *(f"  | {line}" for line in lines[:_SHOWN_LINES]))
            if len(lines) > _SHOWN_LINES:
                more = counted(len(lines) - _SHOWN_LINES, "more line")
                say(f"  | … {more} in {display_path(file)}")
        question = f"Send this to {engine.teacher.label}?"
        if not sources or consent.yes or consent.ask_yes_no(question):
            return
        cure = "" if consent.terminal else ": add --yes to send them without a terminal"
        raise WorkError(f"the sources were not sent{cure}")

    def record(self) -> CommandOutcome:
        """Print the last lines; unless in a dry run, write ``decision.json`` and the page."""
        if self.engine.dry_run:
            self.engine.say(*_last_lines(self))
            return self.outcome
        self._write()
        page = self.engine.drafts.write("page.html", _page(self))
        if self.cases and not self.engine.drafts.read(COMMENTS):
            self.engine.drafts.write(COMMENTS, _comments_form(self))
        self.engine.say(*_last_lines(self), f"page: {display_path(page)}")
        return self.outcome

    def _write(self) -> None:
        costs = [answer.cost_usd for answer in self.engine.workplace.resources.bill.answers]
        known = [cost for cost in costs if cost is not None]
        self.note(
            teacher=self.engine.teacher.resolved,
            students=tuple(student.resolved for student in self.engine.students),
            cost_usd=sum(known) if known or not costs else None,
            asked=len(costs),
            unpriced=len(costs) - len(known),
        )
        text = json.dumps(asdict(self.outcome), indent=1, ensure_ascii=False)
        self.engine.drafts.write("decision.json", f"{text}\n")


def _last_lines(work: Work) -> Iterator[str]:
    """Yield the decision, pass rates, what still fails, the cost and the next step."""
    outcome = work.outcome
    yield f"{outcome.decision}: {outcome.reason}"
    what = "right choices" if work.settings.description else "pass rate with the skill"
    for student, each in [*outcome.figures.items()][:3]:
        yield f"{what}: {percent(each['after'])}% on {student}, {percent(each['before'])}% before"
    if failing := work.failing:
        yield f"still failing: {listed(failing, 5)}"
    if outcome.dropped:
        dropped = counted(len(outcome.dropped), "proposal")
        yield f"dropped or left out: {dropped}, reasons on the page"
    yield _cost(outcome)
    yield f"next: {outcome.next_step or _next_step(outcome, work.engine.typed)}"


def _cost(outcome: CommandOutcome) -> str:
    """Return ``cost: $0.3100 for 842 new answers, 800 of them without a known price``."""
    known = "n/a" if outcome.cost_usd is None else money(outcome.cost_usd)
    some = 0 < outcome.unpriced < outcome.asked
    unknown = f", {outcome.unpriced} of them without a known price" if some else ""
    return f"cost: {known} for {counted(outcome.asked, 'new answer')}{unknown}"


def _next_step(outcome: CommandOutcome, typed: str) -> str:
    """Return what to do after a decision of the command that was typed."""
    if outcome.applied:
        return "review it, then commit it"
    if outcome.decision == "accepted":
        return f"'{typed} --apply' writes it into the skill, without new answers"
    if outcome.look is not None and outcome.command == "generate":
        return "the draft is beside the page; give more sources, or ask for something else"
    if outcome.look is not None:
        return f"comment on the answers in {COMMENTS} beside the page, then run this again"
    if outcome.command in {"cases", "generate"}:
        return "see the reasons on the page; another teacher (-m MODEL) may write better ones"
    return "see the reasons on the page; 'pytest-upskill cases' proposes more cases"


def _comments_form(work: Work) -> str:
    """Return the file in which an author comments on answers.

    It has no held-out case: the teacher reads what is written here.
    """
    parts = [
        f"# Comments on {work.outcome.skill}\n",
        "Write below a heading what the next version should do better there.\n",
        "## The whole skill\n",
    ]
    train = (case for case in work.cases if case.id in work.outcome.train)
    parts += (f"## {case.id}\n\n> {' '.join(case.input.split())}\n" for case in train)
    return "\n".join(parts)


def _page(work: Work) -> str:
    """Return the page about a command: static, without network access or scripts."""
    dropped = work.outcome.dropped.items()
    by_reason = grouped((why.partition(":")[0], f"{case}: {why}") for case, why in dropped)
    template = environment("pytest_upskill.teacher").get_template("page.html")
    return template.render(
        outcome=work.outcome,
        review=work,
        names={each: _VERSIONS[each] for each in dict.fromkeys(v for _, v in work.results)},
        cost=_cost(work.outcome),
        last_lines=[*_last_lines(work)],
        new_code=new_code(work.new, work.old),
        p_text=p_text,
        by_reason=by_reason,
        comments=work.engine.drafts.folder / COMMENTS,
    )
