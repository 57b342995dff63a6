"""Case files and trials as pytest collectors and items."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import pytest
from pydantic import TypeAdapter

from pytest_upskill.cells.wording import ANSWER, failure, quoted_lines
from pytest_upskill.checks.judge import Judge
from pytest_upskill.formats.load import NoSkillError, SkillError, load_skills
from pytest_upskill.formats.skill_md.old_version import with_history
from pytest_upskill.grading.grade import Answer, grade, sandboxed_of
from pytest_upskill.report.junit.properties import trial_properties
from pytest_upskill.repository.git import GitError
from pytest_upskill.result import NO_JUDGE, TrialRecord, TrialResult
from pytest_upskill.sanitize.safe_text import safe_line
from pytest_upskill.session.grouped_warnings import GROUPED_WARNINGS
from pytest_upskill.session.plugin_hooks import decider, extensions_of
from pytest_upskill.session.preflight import RESOURCES, asks
from pytest_upskill.session.settings import NO_MODELS, SETTINGS, Settings, places_of
from pytest_upskill.skill import Case, Skill
from pytest_upskill.trial import Trial, plan

if TYPE_CHECKING:
    from pytest_upskill.compile import Compilers


class Answers(Protocol):
    """Source of answers: this process, or the pytest-xdist controller."""

    def of(self, item: TrialItem) -> list[Answer]:
        """Wait for the answers to all runs of the item's trial and return them."""
        ...


ANSWERS = pytest.StashKey[Answers]()
_CASES = pytest.StashKey[int]()


class CaseFailed(AssertionError):  # noqa: N818  a failed test, not an error of the code
    """Too few runs of a trial passed; the message is the failure report."""


class SkillFile(pytest.File):
    """A case file of one or more skills."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Make an item for each trial; in a file for several skills, a collector for each skill."""
        settings = self.config.stash.get(SETTINGS, None)
        if settings is None:
            raise self.CollectError(f"{self.name}: {NO_MODELS}")
        extensions = extensions_of(self.ihook, self.config.stash[RESOURCES].languages)
        try:
            skills = load_skills(
                self.path,
                shown=shown(self.path, self.config),
                extensions=extensions,
                places=places_of(self.config),
            )
        except NoSkillError as error:
            # Probably another tool's file: an error only if it was named on the command line.
            if not self.session.isinitpath(self.path):
                self._warn([str(error)])
                return
            raise self.CollectError(str(error)) from None
        except SkillError as error:
            raise self.CollectError(str(error)) from None
        _count(self, sum(len(skill.cases) for skill in skills))
        for skill in skills:
            self._warn(skill.warnings)
            if skill.shares_file:
                yield SkillCases.from_parent(self, name=skill.folder.name, skill=skill)
            else:
                self.extra_keyword_matches.add(skill.name)
                yield from items_of(self, skill, settings)

    def _warn(self, found: Iterable[str]) -> None:
        """Add warnings; raise a collect error if the user's filters turn some into errors."""
        errors = []
        for warning in found:
            place, _, text = warning.partition(": ")
            try:
                self.config.stash[GROUPED_WARNINGS].note(place, text)
            except pytest.PytestWarning:
                errors.append(warning)
        if errors:
            raise self.CollectError("\n".join(errors))


class SkillCases(pytest.Collector):
    """The cases of one skill in a file for several skills."""

    def __init__(self, *, skill: Skill, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.skill = skill
        self.extra_keyword_matches.add(skill.name)

    def collect(self) -> Iterator[TrialItem]:
        """Make an item for each trial."""
        yield from items_of(self, self.skill, self.config.stash[SETTINGS])


def items_of(parent: pytest.Collector, skill: Skill, settings: Settings) -> Iterator[TrialItem]:
    """Make the items of a skill, with skip markers where a case cannot run.

    Args:
        parent: Collector of the items.
        skill: The skill and its cases.
        settings: Options of the session.

    Raises:
        pytest.Collector.CollectError: The old version of the skill cannot be read from git.
    """
    compilers = parent.config.stash[RESOURCES].compilers
    unasked = {case.id: _unasked(case, settings) for case in skill.cases}
    blocked = {case.id: _missing(case, compilers) for case in skill.cases}
    try:
        trials = list(trials_of(skill, settings))
    except GitError as error:
        raise parent.CollectError(f"--upskill-compare: {error}") from None
    # A baseline needs every case: where a compiler is missing, none is written.
    planned = Counter(
        trial.model
        for trial in trials
        if not unasked[trial.case.id] and (settings.baseline_update or not blocked[trial.case.id])
    )
    for index, trial in enumerate(trials):
        item = TrialItem.from_parent(
            parent,
            name=trial.name,
            # Explicit: pytest 9.2 does not recognise a parsed id in --lf (pytest#15045).
            nodeid=f"{parent.nodeid}::{trial.name}",
            trial=trial,
            index=index,
            planned=planned[trial.model],
            blocked=blocked[trial.case.id],
        )
        if reason := unasked[trial.case.id]:
            item.add_marker(pytest.mark.skip(reason=safe_line(reason)))
        elif item.blocked and not settings.require_compilers:
            item.add_marker(pytest.mark.skip(reason=safe_line(item.blocked)))
        yield item


class UnsafeFolder(pytest.Directory):
    """A folder whose name is unsafe to print or to use in a node id."""

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path) -> Self:
        """Make the collector of ``path`` with a name that is safe to print."""
        name = safe_line(path.name)
        nodeid = f"{parent.nodeid}/{name}" if parent.nodeid not in {"", "."} else name
        return cls.from_parent(parent, path=path, name=name, nodeid=nodeid)

    def collect(self) -> Iterator[pytest.Item]:
        """Raise a collect error: node ids and reports would contain the folder's name."""
        raise self.CollectError(
            f"{self.nodeid}: the folder's name holds what steers a terminal or a CI runner, or "
            "'::', which pytest's node ids give a meaning: rename it"
        )


class NamedSkill(pytest.File):
    """A ``SKILL.md`` named on the command line instead of its folder."""

    def collect(self) -> Iterator[TrialItem]:
        """Raise a collect error that names the folder to run."""
        folder = shown(self.path.parent, self.config)
        raise self.CollectError(f"{self.name} holds no cases: name its folder, {folder}")


class TrialItem(pytest.Item):
    """One case on one model in one arm."""

    def __init__(
        self, *, trial: Trial, index: int, planned: int, blocked: str | None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.trial = trial
        self.index = index
        self.planned = planned
        self.blocked = blocked
        self.result: TrialResult | None = None
        skill, case, model = trial.skill.name, trial.case.id, trial.model.label
        self.add_marker(pytest.mark.upskill(skill=skill, case=case, model=model, arm=trial.arm))
        # The rest of what -k finds is in the item's name, and the skill's is on the file.
        self.extra_keyword_matches.update(trial.case.tags)

    def setup(self) -> None:
        """Wait for the answers and grade them; fail if missing runs leave the result undecided."""
        if self.blocked:
            pytest.fail(self.blocked, pytrace=False)
        if not asks(self.config):
            return
        answers = self.config.stash[ANSWERS].of(self)
        for answer in answers:
            if answer.unasked:
                raise pytest.skip.Exception(safe_line(answer.unasked), _use_item_location=True)
        self.result = grade(self.trial, answers, decider(self.ihook, self.trial.case))
        self.user_properties[:] = trial_properties(self.result)
        # A replay must contain every run, even one that could not change the result.
        replay = self.config.stash[SETTINGS].cache_mode == "replay"
        if not self.result.settled or (replay and self.result.errors):
            pytest.fail("\n".join(dict.fromkeys(map(safe_line, self.result.errors))), pytrace=False)

    def runtest(self) -> None:
        """Fail if too few runs passed with the skill; other arms never fail."""
        assert self.result is not None
        if self.trial.arm == "with_skill" and not self.result.passed:
            raise CaseFailed(failure(self.result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the report of a failed case, without a traceback."""
        if isinstance(excinfo.value, CaseFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Return the case's file, line (pytest counts from 0) and title."""
        return self.path, self.trial.case.line - 1, f"{self.trial.skill.name}: {self.name}"

    def record(self) -> TrialRecord | None:
        """Return the result with its place in the session, None before the trial is graded."""
        if self.result is None:
            return None
        return TrialRecord(
            path=self.parent.nodeid if self.parent else "",
            index=self.index,
            planned=self.planned,
            gate=self.trial.skill.gate,
            ref=self.trial.skill.ref,
            history=self.trial.skill.history,
            past_unknown=self.trial.skill.past_unknown,
            result=self.result,
        )

    def names(self) -> tuple[str, str, str, str]:
        """Return the names of case file, skill, model and case, which identify a skipped trial."""
        trial = self.trial
        path = self.parent.nodeid if self.parent else ""
        return path, trial.skill.name, trial.model.label, trial.case.id

    def missed_answers(self) -> list[tuple[str, str]]:
        """Return each different answer that did not pass, quoted, as a section of a report."""
        runs = self.result.runs if self.result else ()
        missed = dict.fromkeys(run.completion.text for run in runs if not run.passed)
        return [(ANSWER, quoted_lines(text)) for text in missed]


class TrialReports:
    """Plugin that attaches trial results to test reports, also between processes."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the result to the report of the phase that decides the trial."""
        report = yield
        settles = report.when == "call" or (report.when == "setup" and report.failed)
        if settles and isinstance(item, TrialItem):
            report.upskill = item.record()  # type: ignore[attr-defined]
            if report.when == "call":
                # Not through the item: there, sections of earlier attempts would accumulate.
                report.sections += item.missed_answers()
        elif report.skipped and isinstance(item, TrialItem):
            report.upskill_skipped = item.names()  # type: ignore[attr-defined]
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        """Serialize the result as JSON text: execnet needs ten times as long for nested values."""
        data = yield
        if data and data.get("upskill") is not None:
            data["upskill"] = self._records.dump_json(data["upskill"]).decode()
        return data

    @pytest.hookimpl(wrapper=True)
    def pytest_report_from_serializable(self) -> Generator[None, Any, Any]:
        """Parse the result that a worker serialized."""
        report = yield
        if getattr(report, "upskill", None) is not None:
            report.upskill = self._records.validate_json(report.upskill)
        return report

    @cached_property
    def _records(self) -> TypeAdapter[TrialRecord]:
        return TypeAdapter(TrialRecord)


def trials_by_name(skills: Sequence[Skill], settings: Settings) -> dict[str, Trial]:
    """Return the trials of a file's skills, by the part of the node id after the file.

    Args:
        skills: All skills of one case file.
        settings: Options of the session.

    Raises:
        GitError: The old version of a skill cannot be read.
    """
    return {
        f"{skill.folder.name}::{trial.name}" if skill.shares_file else trial.name: trial
        for skill in skills
        for trial in trials_of(skill, settings)
    }


def wanted(items: Iterable[pytest.Item]) -> dict[str, Trial]:
    """Return the trials that need answers, by node id; skipped trials need none."""
    return {
        item.nodeid: item.trial
        for item in items
        if isinstance(item, TrialItem) and not _skipped(item)
    }


def trials_of(skill: Skill, settings: Settings) -> Iterator[Trial]:
    """Make a skill's trials according to the settings.

    Raises:
        GitError: The old version of the skill cannot be read.
    """
    return plan(
        skill if settings.ref is None else with_history(skill, settings.ref, settings.project),
        settings.models,
        runs=settings.runs,
        min_pass_rate=settings.min_pass_rate,
        max_tokens=settings.max_tokens,
        early_stop=settings.early_stop,
        judge=settings.judge,
    )


def shown(path: Path, config: pytest.Config) -> str:
    """Return a path relative to the directory in which pytest was started."""
    return os.path.relpath(path, config.invocation_params.dir)


def _count(file: SkillFile, cases: int) -> None:
    """Add to the session's number of cases, and raise a collect error above the limit."""
    before = file.session.stash.get(_CASES, 0)
    file.session.stash[_CASES] = before + cases
    most = file.config.stash[SETTINGS].max_cases
    if before <= most < before + cases:
        raise file.CollectError(
            f"the run has over {most:,} cases: name fewer skills, or set upskill_max_cases"
        )


def _skipped(item: TrialItem) -> bool:
    return item.blocked is not None or item.get_closest_marker("skip") is not None


def _unasked(case: Case, settings: Settings) -> str | None:
    """Return why no model is asked about a case, None if models are."""
    if foreign := case.foreign(model.label for model in settings.models):
        return foreign
    only_statements = all(isinstance(check, Judge) for check in case.checks)
    if case.skip is None and only_statements and settings.judge is None:
        return NO_JUDGE
    return case.skip


def _missing(case: Case, compilers: Callable[[], Compilers]) -> str | None:
    """Return what this machine lacks to decide a case's checks, None if nothing."""
    missing = (compilers().missing(check) for check in sandboxed_of(case))
    return next((reason for reason in missing if reason is not None), None)
