"""What the branch of a pull request changed since a git ref: skills, catalogues, case files.

Where git fails, collecting the skills has already been an error, so what is only told says nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

import pytest

from pytest_upskill import CASE_FILE
from pytest_upskill.answers.changed_recordings import skills_with_other_recordings
from pytest_upskill.cases.adapters.registry import adapters_at
from pytest_upskill.cases.history import other_skills_changed
from pytest_upskill.project import git
from pytest_upskill.project.branch_point import BranchPoint
from pytest_upskill.project.messages import agreeing, listed, safe_line
from pytest_upskill.session import case_files
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.trials.trial import Trial

_POINTS = pytest.StashKey[dict[str, BranchPoint]]()


def branch_point(config: pytest.Config, ref: str) -> BranchPoint:
    """Return where the branch left a ref; one object per session, as it remembers."""
    points = config.stash.setdefault(_POINTS, {})
    if ref not in points:
        points[ref] = BranchPoint(ref, case_files.project_of(config))
    return points[ref]


class Branch:
    """A branch, compared with the commit where it left a git ref.

    Args:
        config: The config of the session.
        ref: The ref, in the repository of the project.
    """

    def __init__(self, config: pytest.Config, ref: str) -> None:
        self._config = config
        self.ref = ref
        self._point = branch_point(config, ref)
        self._is_changed = cache(self._point.is_changed)
        self._is_catalogue_changed = cache(self._ask_whether_catalogue_changed)

    def affects(self, trial: Trial) -> bool:
        """Return whether it changed the skill of a trial, its cases or what a model chooses from.

        Raises:
            GitError: A git command fails.
        """
        folder, cases = trial.skill.folder, trial.skill.suite or trial.skill.case_file.parent
        changed = self._is_changed(folder) or self._is_changed(cases)
        return changed or (trial.chooses and self._is_catalogue_changed(folder.parent))

    def changed(self, folders: Iterable[Path]) -> Iterator[Path]:
        """Yield the folders that are new or changed; not those for which git fails."""
        for folder in folders:
            with suppress(git.GitError):
                if self._is_changed(folder):
                    yield folder

    def _ask_whether_catalogue_changed(self, folder: Path) -> bool:
        """Return whether the skills among which a model chooses differ from those at the ref.

        Args:
            folder: The folder of the skills.

        Raises:
            GitError: A git command fails.
        """
        commit = self._point.commit(folder)
        file = case_files.catalogue_file(self._config)
        if file.exists():
            return git.content_at(commit, file) != file.read_bytes()
        return other_skills_changed(commit, folder, case_files.catalogues_of(self._config))

    @cached_property
    def rerecorded(self) -> set[str]:
        """The skills whose results rest on other recordings than those at the ref.

        Raises:
            GitError: A git command fails.
        """
        recorded = self._config.stash[RESOURCES].cache
        if not recorded.is_read:
            return set()
        return skills_with_other_recordings(recorded.folder, self._point)

    @cached_property
    def changed_skills(self) -> list[Path]:
        """The folders of the repository whose ``SKILL.md`` is new or changed."""
        with suppress(git.GitError):
            return git.changed_skills(self._point.commit(), self._point.project)
        return []

    @cached_property
    def _gone(self) -> Mapping[Path, Path | None]:
        """Where the files are that were deleted or moved, by their old places."""
        with suppress(git.GitError):
            return git.gone_files(self._point.commit(), self._point.project)
        return {}

    @cached_property
    def gone_skills(self) -> Mapping[Path, Path | None]:
        """Where the skills are that were deleted or moved, None if deleted, by their old places."""
        return git.gone_skills(self._gone)

    @cached_property
    def _gone_case_files(self) -> Mapping[Path, Path | None]:
        """Those of the files that are case files by their names and places."""
        gone = self._gone.items()
        return {old: new for old, new in gone if old.name == CASE_FILE or adapters_at(old)}

    def why_no_cases_any_more(self, skill: Path) -> str:
        """Return which case files of a skill were deleted, and what to do; empty if none was."""
        homes = {skill, *(old for old, new in self.gone_skills.items() if new == skill)}
        names = {home.name for home in homes}
        lost = {
            self._shown(old): new
            for old, new in self._gone_case_files.items()
            # Cases may also be in a folder or file with the skill's name.
            if homes.intersection(old.parents) or names.intersection((old.parent.name, old.stem))
        }
        if renamed := [f"{old} is now {self._shown(new)}" for old, new in lost.items() if new]:
            cure = "which is not read: give it its name back, or set upskill_case_files"
            return f"no cases any more: {listed(renamed)}, {cure}"
        deleted = f"{listed([*lost])} {agreeing('was', len(lost))} deleted since {self.ref}"
        return f"no cases any more: {deleted}: restore it, or delete the skill too" if lost else ""

    def _shown(self, path: Path) -> str:
        return case_files.shown(path, self._config)

    @property
    def case_files_gone_without_skill(self) -> list[Path]:
        """The old places of the case files that left them, except with their skill."""
        discovery = case_files.discovery_of(self._config)
        return [
            old
            for old, new in self._gone_case_files.items()
            # Of a renamed skill, the cases are compared.
            if self.gone_skills.keys().isdisjoint(old.parents)
            or not (new is None or discovery.is_case_file(new))
        ]

    def stale_catalogue(self, homes: Iterable[Path]) -> Iterator[str]:
        """Yield which skills a changed catalogue or an older one shows otherwise, or still has.

        Those without cases too, as they may take the queries of others.

        Args:
            homes: The folders of all skills.
        """
        catalogues = case_files.catalogues_of(self._config)
        if (committed := catalogues.committed) is None:
            return
        with suppress(git.GitError):
            commit = self._point.commit()
            changed = (
                home
                for home in homes
                if self._is_catalogue_changed(home)
                or other_skills_changed(commit, home, catalogues)
            )
            here = {skill for home in changed for skill in catalogues.folder(home).catalogue.skills}
            deleted = {skill.name for skill in self.gone_skills}
            gone = deleted & committed.names - {skill.name for skill in here}
            if stale := {skill.name for skill in here.difference(committed.skills)} | gone:
                yield safe_line(
                    f"{listed(sorted(stale))}: the catalogue file is not up to date, so queries "
                    "are measured with what it says: pytest --upskill-catalogue-update"
                )
