"""What is not measured of what was measured before, or of what a pull request changed, and why."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_upskill import CASE_FILE
from pytest_upskill.cases.discovery import skill_folders
from pytest_upskill.cases.source.files import start_of
from pytest_upskill.project.grouping import grouped
from pytest_upskill.project.messages import agreeing, listed, safe_line
from pytest_upskill.session.branch import Branch
from pytest_upskill.session.case_files import arguments_of, discovery_of, shown
from pytest_upskill.trials.result import CellKey
from pytest_upskill.trials.trial import Arm


class _Loss(NamedTuple):
    """Something that is not measured."""

    folder: str
    """Folder of the changed skill that lacks it; empty if none does."""
    name: str
    why: str
    """Begins with a verb, of one subject."""


def _lines(losses: Iterable[_Loss]) -> Iterator[str]:
    """Yield a line for each cause."""
    for why, lost in grouped((loss.why, loss.name) for loss in losses).items():
        verb, _, rest = why.partition(" ")
        yield safe_line(f"{listed(lost)} {agreeing(verb, len(lost))} {rest}")


@dataclass
class Found:
    """What collection found; a worker sends it to the controller."""

    nothing_changed: str = ""
    """Why there was nothing to run: every skill is unchanged; empty if there was."""
    left_out: str = ""
    """How many skills were deselected as unchanged; empty if none was."""
    deselected: bool = False
    """Whether items were deselected, so that skills are missing on purpose."""
    visited: set[str] = field(default_factory=set)
    """Folders that contain a ``SKILL.md``."""
    folders: dict[str, str] = field(default_factory=dict)
    """Folders of the skills that run, by the path of their case file from the rootdir."""
    misnamed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By folder of a skill, a file that has nearly the name of its case file, and its cure."""
    hints: list[str] = field(default_factory=list)
    """Lines about files that look like case files, and Python files not collected."""
    outside: dict[str, list[str]] = field(default_factory=dict)
    """Case files that no argument names, by the folder of their skill."""
    of_no_skill: list[str] = field(default_factory=list)
    """Case files whose cases belong to no known skill."""
    expected: dict[tuple[tuple[Any, ...], str, str], str] = field(default_factory=dict)
    """By trial on which the branch has an effect the folder of its skill."""


class Losses:
    """What is not measured, by what collection found and, in a pull request, by its branch."""

    def __init__(self, config: pytest.Config, branch: Branch | None, found: Found) -> None:
        self.branch, self.found, self._config = branch, found, config
        self._unmeasured_baselines: list[str] = []
        """Case files that have a baseline, and of which nothing was measured."""
        self._lost_cases = defaultdict[str, set[str]](set)
        """Cases of expected trials that did not run, by the folder of their skill."""

    def missed(self, exitstatus: int) -> Iterator[str]:
        """Yield what to tell at the end: what is not measured, and hints."""
        not_named = self._not_named(map(Path, sorted(self.found.outside)))
        yield from (*_lines(self._misspelled()), *self.found.hints, *_lines(not_named))
        none_ran = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not self.found.deselected
        yield from _lines(self._losses()) if none_ran else self.lines()
        yield from self.elsewhere()
        given, told = set(arguments_of(self._config)), self._changed_and_unvisited
        missed = [each for each in self._unvisited if each not in told]
        unvisited = {each if each.parent in given else each.parent for each in missed}
        # Workers of an interrupted run do not tell what they have visited.
        if not self.found.deselected and unvisited and exitstatus != pytest.ExitCode.INTERRUPTED:
            folders = sorted(shown(each, self._config) for each in unvisited)
            them = "it" if len(folders) == 1 else "them"
            yield (
                f"pytest does not look for tests in {listed(folders)}: pass {them} as an argument "
                "to run the skills there"
            )
        elif none_ran and not (self.found.visited or self.found.misnamed or self.found.hints):
            yield (
                f"no skill in {listed(self._config.args)}, that is, no folder with a SKILL.md: "
                "name another folder, or write a skill with pytest-upskill generate"
            )

    def is_missed(self, case_file: str, measured: Collection[str]) -> bool:
        """Return whether a pull request changed a skill, or its cases, and nothing measured it.

        Args:
            case_file: A case file of the skill.
            measured: The case files that were measured.
        """
        others = {self.found.folders.get(each) for each in measured}
        if self.branch is None or self.found.folders.get(case_file) in {None, *others}:
            return False
        folders = (Path(self.found.folders[case_file]), (self._config.rootpath / case_file).parent)
        return any(self.branch.changed(folders))

    def note_lost(self, ran: Iterable[tuple[CellKey, str, Arm]]) -> None:
        """Note the cases of which not every trial ran, though nothing stopped the session.

        Args:
            ran: Cell, case and arm of each trial with a result.
        """
        for cell, case, arm in self.found.expected.keys() - set(ran):
            skill = self.found.expected[cell, case, arm]
            self._lost_cases[skill].add(f"{CellKey(*cell).skill}::{case}")

    def note_baselines(self, unmeasured: Iterable[str]) -> None:
        """Note case files with a baseline that was not compared, unless only some were to be."""
        known = [path.resolve() for path in arguments_of(self._config)]
        for file in () if self.found.deselected else sorted({*unmeasured}):
            if any(map((self._config.rootpath / file).is_relative_to, known)):
                self._unmeasured_baselines.append(file)

    def lines(self) -> Iterator[str]:
        """Yield what was measured before and is not any more, a line for each cause."""
        return _lines(self._serious())

    def _serious(self) -> Iterator[_Loss]:
        return self._losses() if self.branch else self._of_baselines(with_skill=False)

    @cached_property
    def without_cases(self) -> dict[str, str]:
        """The changed skills of a pull request of which not all cases run, and why."""
        losses = (loss for loss in (*self._serious(), *self._deleted()) if loss.folder)
        root = self._config.rootpath
        found = grouped((os.path.relpath(loss.folder, root), loss) for loss in losses)
        return {folder: "; ".join(_lines(of_skill)) for folder, of_skill in found.items()}

    def elsewhere(self) -> Iterator[str]:
        """Yield which changed skills of a pull request other runs of pytest are to measure."""
        known = [path.resolve() for path in arguments_of(self._config)]
        known += (new for _, new in self._departed if new)
        known += (Path(folder).resolve() for folder in self.found.folders.values())
        changed = self.branch.changed_skills if self.branch else ()
        others = (each for each in changed if not any(map(each.is_relative_to, known)))
        why = "is outside the arguments, and changed: see that another run measures it"
        return _lines(_Loss("", shown(each, self._config), why) for each in others)

    def not_measured(self) -> Iterator[str]:
        """Yield what a pull request changed so that it is not measured, one line each."""
        yield from _lines(self._deleted())
        if self.branch is not None:
            homes = {
                Path(each).parent for each in (*self.found.visited, *self.found.folders.values())
            }
            yield from self.branch.stale_catalogue(homes)

    def _losses(self) -> Iterator[_Loss]:
        """Yield what is not measured; in a pull request, only what that is the cause of."""
        told = (*self._misspelled(), *self._of_baselines(with_skill=False))
        yield from told
        explained = {loss.folder for loss in (*told, *self._deleted())}
        others = [each for each in self._empty if str(each) not in explained]
        skill = shown(others[0], self._config) if len(others) == 1 else "SKILL"
        no_cases = f"has no cases: pytest-upskill init {skill} writes a first {CASE_FILE}"
        yield from (_Loss(str(each), each.name, no_cases) for each in others)
        if self.branch is not None:
            yield from self._not_named(self.branch.changed(map(Path, sorted(self.found.outside))))
            yield from self._taken_away(self.branch)

    def _of_baselines(self, *, with_skill: bool) -> Iterator[_Loss]:
        why = "has a baseline that nothing was compared with: restore it, or delete that too"
        for file in self._unmeasured_baselines:
            path = self._config.rootpath / file
            skill = self._skill_of(path)
            if bool(skill) is with_skill:
                yield _Loss(skill or str(path.parent), file, why)

    def _skill_of(self, gone: Path) -> str:
        """Return the folder of the skill whose case file a path was; "" if it is gone as well."""
        by_name = {Path(each).name: each for each in sorted(self.found.visited)}
        around = [str(each) for each in gone.parents if str(each) in self.found.visited]
        named = [by_name[each.name] for each in gone.parents if each.name in by_name]
        return next(iter([*around, *named]), "")

    def _misspelled(self) -> Iterator[_Loss]:
        for folder, (path, cure) in sorted(self.found.misnamed.items()):
            yield _Loss(folder, path, cure)

    def _not_named(self, skills: Iterable[Path]) -> Iterator[_Loss]:
        for skill in skills:
            why = f"was not named as an argument, so not all cases of {skill.name} run"
            yield from (_Loss(str(skill), file, why) for file in self.found.outside[str(skill)])

    def _taken_away(self, branch: Branch) -> Iterator[_Loss]:
        """Yield what a branch took from the measurement: skills, case files and cases."""
        since = f"since {branch.ref}"
        gone = f"was deleted or moved away {since}: no trial is left: see that this is meant"
        for old, new in self._departed:
            now = f" (now {shown(new, self._config)})" if new else ""
            yield _Loss(str(new or ""), f"{shown(old, self._config)}{now}", gone)
        told = {loss.folder for loss in self._deleted()}
        for old in branch.case_files_gone_without_skill:
            skill = self._skill_of(old)
            why = f"was deleted or moved {since}: see that no case is lost"
            yield _Loss("" if skill in told else skill, shown(old, self._config), why)
        for folder in self._changed_and_unvisited:
            uncollected = f"was changed {since}, but pytest does not collect it"
            yield _Loss(str(folder), shown(folder, self._config), uncollected)
        for skill, cases in sorted(self._lost_cases.items()):
            not_run = "was skipped or deselected, and so not measured"
            yield from (_Loss(skill, case, not_run) for case in sorted(cases))
        for file in sorted(self.found.of_no_skill) if branch.gone_skills else ():
            yield _Loss("", file, f"was for a skill deleted or renamed {since}: write its new name")

    def _deleted(self) -> Iterator[_Loss]:
        """Yield the case files that were deleted, while their skills are still there."""
        yield from self._of_baselines(with_skill=True)
        for folder in self._empty:
            if why := self.branch and self.branch.why_no_cases_any_more(folder):
                yield _Loss(str(folder), folder.name, f"has {why}")

    @cached_property
    def _departed(self) -> list[tuple[Path, Path | None]]:
        """The old and new places of the skills that a branch took from where pytest looks."""
        arguments = {path.resolve() for path in arguments_of(self._config)}
        return [
            (old, new)
            for old, new in (self.branch.gone_skills.items() if self.branch else ())
            if not arguments.isdisjoint((old, *old.parents))
            if self.found.visited.isdisjoint((str(old), str(new)))
        ]

    @cached_property
    def _changed_and_unvisited(self) -> list[Path]:
        """The folders of skills that a pull request changed, and pytest did not visit."""
        if self.branch is None or not self._unvisited:
            return []
        texts = {start_of(Path(folder, "SKILL.md")) for folder in self.found.visited}
        others = (each for each in self._unvisited if start_of(each / "SKILL.md") not in texts)
        return [*self.branch.changed(others)]

    @cached_property
    def _empty(self) -> list[Path]:
        """The skills without cases; in a pull request, those of them that are new or changed."""
        discovery = discovery_of(self._config)
        # Cases of a setting may be anywhere, and were collected then.
        visited = map(Path, self.found.visited.difference(self.found.folders.values()))
        folders = sorted(visited, key=lambda folder: folder.name)
        empty = (folder for folder in folders if not discovery.skill_has_cases(folder))
        return [*(self.branch.changed(empty) if self.branch else empty)]

    @cached_property
    def _unvisited(self) -> list[Path]:
        """The folders of skills below the arguments of pytest that it has not visited.

        Those are left out that ``--ignore`` names, except in a pull request, which may have set it.
        """
        # A link to a skill that was visited elsewhere is no unvisited skill.
        visited = {Path(folder).resolve() for folder in self.found.visited}
        start = self._config.invocation_params.dir
        ignored = self._config.getoption("ignore") if self.branch is None else None
        meant = [Path(os.path.abspath(start / each)) for each in ignored or ()]  # noqa: PTH100  links stay
        tops = [each for each in arguments_of(self._config) if each.is_dir()]
        by_setting = self._config.args_source is pytest.Config.ArgsSource.TESTPATHS
        if by_setting and not self.found.visited and self.branch is None:
            tops = [self._config.rootpath]
        below = (folder for top in tops for folder in skill_folders(top))
        return [
            folder
            for folder in below
            if folder.resolve() not in visited and not any(map(folder.is_relative_to, meant))
        ]
