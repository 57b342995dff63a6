"""Case files as pytest collectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from pytest_upskill.cases.load import NoSkillError, SkillError, load_skills
from pytest_upskill.cases.skill import Case, Skill
from pytest_upskill.cases.skill_files import InstallError, with_files, with_history
from pytest_upskill.grading.grade import sandboxed_of
from pytest_upskill.project.git import GitError
from pytest_upskill.project.messages import safe_line
from pytest_upskill.session.case_files import (
    catalogues_of,
    discovery_of,
    node_id_names,
    shown,
)
from pytest_upskill.session.grouped_warnings import GROUPED_WARNINGS
from pytest_upskill.session.items import TrialItem
from pytest_upskill.session.plugin_hooks import extensions_of
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.settings import NO_MODELS, SETTINGS, Settings
from pytest_upskill.trials.needs import why_skipped
from pytest_upskill.trials.trial import Trial, plan, unlisted_choices

if TYPE_CHECKING:
    from pytest_upskill.checks.compile import Compilers

_CASES = pytest.StashKey[int]()


class SkillFile(pytest.File):
    """A case file of one or more skills, or a ``SKILL.md`` that is named instead of its folder."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Make an item for each trial; in a file for several skills, a collector for each skill."""
        if self.name == "SKILL.md":
            folder = shown(self.path.parent, self.config)
            raise self.CollectError(
                f"{self.name} contains no cases: name its folder instead, {folder}"
            )
        if SETTINGS not in self.config.stash:
            raise self.CollectError(f"{self.name}: {NO_MODELS}")
        extensions = extensions_of(self.ihook, self.config.stash[RESOURCES].languages)
        try:
            skills = load_skills(
                self.path,
                shown=shown(self.path, self.config),
                extensions=extensions,
                discovery=discovery_of(self.config),
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
        for skill, folder in zip(skills, node_id_names(skills), strict=True):
            self._warn([*skill.warnings, *skill.hints])
            name = shown(self.path, self.config)
            catalogues = catalogues_of(self.config)
            chooses = any(case.trigger for case in skill.cases)
            if chooses and (ambiguous := catalogues.why_ambiguous(skill)):
                place = shown(skill.folder / "SKILL.md", self.config)
                raise self.CollectError(f"{place}: name: {ambiguous}")
            unlisted = unlisted_choices(skill, catalogues)
            self._warn(safe_line(f"{name}:{line}") for line in unlisted)
            if skill.shares_file:
                yield SkillCases.from_parent(self, name=folder, skill=skill)
            else:
                self.extra_keyword_matches.add(skill.name)
                yield from items_of(self, skill)

    def _warn(self, warnings: Iterable[str]) -> None:
        """Add warnings; raise a collect error if the user's filters turn some into errors."""
        if errors := self.config.stash[GROUPED_WARNINGS].note_lines(warnings):
            raise self.CollectError("\n".join(errors))


class SkillCases(pytest.Collector):
    """The cases of one skill in a file for several skills."""

    def __init__(self, *, skill: Skill, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.skill = skill
        self.extra_keyword_matches.add(skill.name)

    def collect(self) -> Iterator[TrialItem]:
        """Make an item for each trial."""
        yield from items_of(self, self.skill)


def items_of(parent: pytest.Collector, skill: Skill) -> Iterator[TrialItem]:
    """Make the items of a skill, with skip markers where a trial cannot run.

    Args:
        parent: Collector of the items.
        skill: The skill and its cases.

    Raises:
        pytest.Collector.CollectError: The old version of the skill cannot be read from git, or its
            folder cannot be installed for an agent.
    """
    settings = parent.config.stash[SETTINGS]
    compilers = parent.config.stash[RESOURCES].compilers
    trials = _trials_of(skill, parent)
    reasons = [_reason_to_skip(trial, settings) for trial in trials]
    missing = {case.id: _missing(case, compilers) for case in skill.cases}
    lacking = [None if trial.chooses else missing[trial.case.id] for trial in trials]
    # A baseline needs every case: where a compiler is missing, none is written.
    planned = Counter(
        (trial.model, trial.chooses)
        for trial, reason, lack in zip(trials, reasons, lacking, strict=True)
        if not reason and (settings.baseline_update or not lack)
    )
    for index, (trial, reason, lack) in enumerate(zip(trials, reasons, lacking, strict=True)):
        yield TrialItem.from_parent(
            parent,
            name=trial.name,
            # Explicit: pytest 9.2 does not recognize a parsed id in --lf (pytest#15045).
            nodeid=f"{parent.nodeid}::{trial.name}",
            trial=trial,
            index=index,
            planned_trials=planned[trial.model, trial.chooses],
            why_skipped=reason or (None if settings.require_compilers else lack),
            why_not_runnable=lack if settings.require_compilers else None,
        )


def _trials_of(skill: Skill, parent: pytest.Collector) -> list[Trial]:
    """Return a skill's trials, with what its arms and the models' agents need."""
    settings = parent.config.stash[SETTINGS]
    try:
        if any(model.agent for model in settings.models):
            skill = with_files(skill)
        if settings.ref is not None:
            skill = with_history(skill, settings.ref, settings.project)
    except GitError as error:
        raise parent.CollectError(f"--upskill-compare: {error}") from None
    except InstallError as error:
        raise parent.CollectError(str(error)) from None
    trials = plan(
        skill,
        settings.models,
        runs=settings.runs,
        baseline_runs=settings.baseline_runs,
        min_pass_rate=settings.min_pass_rate,
        max_tokens=settings.max_tokens,
        early_stop=settings.early_stop,
        judge=settings.judge,
        catalogues=catalogues_of(parent.config),
    )
    return list(trials)


def _reason_to_skip(trial: Trial, settings: Settings) -> str | None:
    """Return why a trial is skipped whatever is installed, None if it is not."""
    case = trial.case
    if foreign := case.why_not_for(model.label for model in settings.models):
        return foreign
    if trial.chooses and trial.skill.hidden:
        return f"no agent sees {trial.skill.name}: disable-model-invocation is set"
    return why_skipped(
        case,
        chooses=trial.chooses,
        has_judge=settings.judge is not None,
        is_agent=bool(trial.model.agent),
    )


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
            f"{self.nodeid}: the folder's name contains control characters, a CI runner's command "
            f"or the separator of pytest's node ids, '::': rename it"
        )


def _count(file: SkillFile, cases: int) -> None:
    """Add to the session's number of cases, and raise a collect error above the limit."""
    before = file.session.stash.get(_CASES, 0)
    file.session.stash[_CASES] = before + cases
    most = file.config.stash[SETTINGS].max_cases
    if before <= most < before + cases:
        raise file.CollectError(
            f"the run has over {most:,} cases: select fewer skills, or raise upskill_max_cases"
        )


def too_many_cases(session: pytest.Session) -> bool:
    """Return whether the session has more cases than it may have."""
    cases = session.stash.get(_CASES, 0)
    return cases > 0 and cases > session.config.stash[SETTINGS].max_cases


def _missing(case: Case, compilers: Callable[[], Compilers]) -> str | None:
    """Return what this machine lacks to decide a case's checks, None if nothing."""
    missing = (compilers().missing(check) for check in sandboxed_of(case))
    return next((reason for reason in missing if reason is not None), None)
