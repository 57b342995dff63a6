"""Case files as pytest collectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from pytest_upskill.checks.judge import Judge
from pytest_upskill.formats.load import NoSkillError, SkillError, load_skills
from pytest_upskill.formats.skill import Case, Skill
from pytest_upskill.formats.skill_md.installed import InstallError
from pytest_upskill.grading.grade import sandboxed_of
from pytest_upskill.repository.git_command import GitError
from pytest_upskill.sanitize.safe_text import safe_line
from pytest_upskill.session.collection.catalogues import catalogues_of
from pytest_upskill.session.collection.grouped_warnings import GROUPED_WARNINGS
from pytest_upskill.session.collection.items import TrialItem, shown, trials_of
from pytest_upskill.session.collection.places import names_of, places_of
from pytest_upskill.session.options.settings import (
    NO_MODELS,
    SETTINGS,
    Settings,
)
from pytest_upskill.session.plugin_hooks import extensions_of
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.trials.skipped import NO_JUDGE
from pytest_upskill.trials.trial import Trial, unlisted_choices

if TYPE_CHECKING:
    from pytest_upskill.compile import Compilers

_CASES = pytest.StashKey[int]()


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
        for skill, folder in zip(skills, names_of(skills), strict=True):
            self._warn(skill.warnings)
            name = shown(self.path, self.config)
            unlisted = unlisted_choices(skill, catalogues_of(self.config))
            self._warn(safe_line(f"{name}:{line}") for line in unlisted)
            if skill.shares_file:
                yield SkillCases.from_parent(self, name=folder, skill=skill)
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
    try:
        trials = list(trials_of(skill, settings, catalogues_of(parent.config)))
    except GitError as error:
        raise parent.CollectError(f"--upskill-compare: {error}") from None
    except InstallError as error:
        raise parent.CollectError(str(error)) from None
    reason_of = _reason_to_skip(skill, settings)
    blocked = {case.id: _missing(case, compilers) for case in skill.cases}

    def blocked_by(trial: Trial) -> str | None:
        return None if trial.chooses else blocked[trial.case.id]

    # A baseline needs every case: where a compiler is missing, none is written.
    planned = Counter(
        (trial.model, trial.chooses)
        for trial in trials
        if not reason_of(trial) and (settings.baseline_update or not blocked_by(trial))
    )
    for index, trial in enumerate(trials):
        item = TrialItem.from_parent(
            parent,
            name=trial.name,
            # Explicit: pytest 9.2 does not recognise a parsed id in --lf (pytest#15045).
            nodeid=f"{parent.nodeid}::{trial.name}",
            trial=trial,
            index=index,
            planned=planned[trial.model, trial.chooses],
            blocked=blocked_by(trial),
        )
        if reason := reason_of(trial):
            item.add_marker(pytest.mark.skip(reason=safe_line(reason)))
        elif item.blocked and not settings.require_compilers:
            item.add_marker(pytest.mark.skip(reason=safe_line(item.blocked)))
        yield item


def _reason_to_skip(skill: Skill, settings: Settings) -> Callable[[Trial], str | None]:
    """Return a function that returns why a trial of a skill is skipped, None if it is not."""
    unasked = {
        (case.id, chooses): _unlisted(skill) if chooses else _unasked(case, settings)
        for case in skill.cases
        for chooses in (False, True)
    }

    def reason_of(trial: Trial) -> str | None:
        foreign = trial.case.foreign(model.label for model in settings.models)
        return foreign or unasked[trial.case.id, trial.chooses] or _no_agent(trial)

    return reason_of


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


class NamedSkill(pytest.File):
    """A ``SKILL.md`` named on the command line instead of its folder."""

    def collect(self) -> Iterator[TrialItem]:
        """Raise a collect error that names the folder to run."""
        folder = shown(self.path.parent, self.config)
        raise self.CollectError(f"{self.name} contains no cases: name its folder instead, {folder}")


def _count(file: SkillFile, cases: int) -> None:
    """Add to the session's number of cases, and raise a collect error above the limit."""
    before = file.session.stash.get(_CASES, 0)
    file.session.stash[_CASES] = before + cases
    most = file.config.stash[SETTINGS].max_cases
    if before <= most < before + cases:
        raise file.CollectError(
            f"the run has over {most:,} cases: select fewer skills, or raise upskill_max_cases"
        )


def _unasked(case: Case, settings: Settings) -> str | None:
    """Return why no answer to a case is requested, None if answers are."""
    only_statements = all(isinstance(check, Judge) for check in case.checks)
    if case.skip is None and only_statements and settings.judge is None:
        return NO_JUDGE
    return case.skip


def _no_agent(trial: Trial) -> str | None:
    """Return why a trial needs an agent, or none, None if it has what it needs."""
    needed = trial.case.needs_agent
    if not needed or trial.model.agent:
        return None
    return (
        f"'{needed}' needs an agent, and {trial.model.label} answers single requests: "
        "choose one, such as loop:haiku"
    )


def _unlisted(skill: Skill) -> str | None:
    """Return why no agent could choose a skill, None if agents could."""
    return f"no agent sees {skill.name}: disable-model-invocation is set" if skill.hidden else None


def _missing(case: Case, compilers: Callable[[], Compilers]) -> str | None:
    """Return what this machine lacks to decide a case's checks, None if nothing."""
    missing = (compilers().missing(check) for check in sandboxed_of(case))
    return next((reason for reason in missing if reason is not None), None)
