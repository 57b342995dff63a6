"""Which files, skills and trials run, which do not, and hints about those that are missed."""

import os
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_upskill import CASE_FILE, CASE_SUFFIXES
from pytest_upskill.cases.discovery import skill_and_name_meant, skill_folders
from pytest_upskill.cases.source.files import start_of
from pytest_upskill.models.model import ALIASES
from pytest_upskill.project.git import GitError
from pytest_upskill.project.messages import agreeing, counted, did_you_mean, listed, safe_line
from pytest_upskill.session.branch import Branch
from pytest_upskill.session.case_files import (
    arguments_of,
    discovery_of,
    lookalikes,
    outside_arguments,
    shown,
)
from pytest_upskill.session.items import COLLECTORS, OF_NO_SKILL, SkillFile, TrialItem, UnsafeFile
from pytest_upskill.session.messages import QUIETEST, RUN_REFUSED, write
from pytest_upskill.session.settings import SETTINGS
from pytest_upskill.session.untrusted_files import NOT_COLLECTED, line_about
from pytest_upskill.trials.result import CellKey
from pytest_upskill.trials.trial import Arm

_SENT = (
    *("_misnamed", "_hints", "_visited", "_left_out", "_folders", "_of_no_skill"),
    *("nothing_changed", "deselected", "_expected", "_outside"),
)
"""What a worker sends to the controller."""


class _Loss(NamedTuple):
    """Something that is not measured."""

    folder: str
    """Folder of the changed skill that lacks it; empty if none does."""
    name: str
    why: str
    """Begins with a verb, of one subject."""


def _lines(losses: Iterable[_Loss]) -> Iterator[str]:
    """Yield a line for each cause."""
    names = defaultdict[str, list[str]](list)
    for loss in losses:
        names[loss.why].append(loss.name)
    for why, lost in names.items():
        verb, _, rest = why.partition(" ")
        yield safe_line(f"{listed(lost)} {agreeing(verb, len(lost))} {rest}")


class Selection:
    """Plugin that deselects the trials of unchanged skills, and prints which skills did not run.

    The latter have no cases, or pytest does not look for them. A worker sends the controller what
    it found.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.nothing_changed = ""
        """Why there was nothing to run: every skill is unchanged; empty if there was."""
        self._config = config
        settings = config.stash.get(SETTINGS, None)  # None under --upskill-lint
        since, ref = (settings.changed_since, settings.ref) if settings else (None, None)
        self._since = Branch(config, since) if since else None
        """The branch by which trials are deselected as unchanged; None to deselect none."""
        self.branch = Branch(config, ref) if ref and ref != since else self._since
        """The branch of a pull request; None if nothing says with what to compare it."""
        self._left_out = ""
        """How many skills were deselected as unchanged; empty if none was."""
        self._folders: dict[str, str] = {}
        """Folders of skills, by the path of their case file from the rootdir."""
        self._visited: set[str] = set()
        """Folders that contain a ``SKILL.md``."""
        self._misnamed: dict[str, tuple[str, str]] = {}
        """By folder of a skill, a file that has nearly the name of its case file, and its cure."""
        self._unread: list[Path] = []
        """Other files from which no cases are read, though they have a suffix of case files."""
        self._hints: list[str] = []
        """Lines about those of `_unread` that look like cases, and Python files not collected."""
        self._outside: dict[str, list[str]] = {}
        """Case files that no argument names, by the folder of their skill."""
        self._collected: set[Path] = set()
        """Files that were collected."""
        self._of_no_skill: list[str] = []
        """Those of `_collected` whose cases belong to no known skill."""
        self.deselected = False
        """Whether items were deselected, so that skills are missing on purpose."""
        self._expected: dict[tuple[tuple[Any, ...], str, str], str] = {}
        """By trial on which the branch has an effect the folder of its skill."""
        self._unmeasured_baselines: list[str] = []
        """Case files that have a baseline, and of which nothing was measured."""
        self._lost_cases = defaultdict[str, set[str]](set)
        """Cases of such trials that did not run, by the folder of their skill."""
        self._broken_files = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Refuse an argument that does not exist with what was probably meant.

        pytest suggests nothing, and pytest-xdist passes over its error.
        """
        for argument, path in zip(self._config.args, arguments_of(self._config), strict=True):
            if not (self._config.option.pyargs or path.exists()):
                missing = next(each for each in (path, *path.parents) if each.parent.exists())
                meant = did_you_mean(missing.name, (each.name for each in missing.parent.iterdir()))
                if argument in {"offline", *ALIASES}:
                    meant = ": write commas between models, as in --upskill-models haiku,sonnet"
                raise pytest.UsageError(f"file or directory not found: {argument}{meant}")
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[Any], list[Any]]:
        """Record the folder of a ``SKILL.md``, and files that nobody collects.

        A file that the command line names is always collected: it has cases, or our error is
        clearer than pytest's.
        """
        collectors = yield
        if file_path.name == "SKILL.md":
            self._visited.add(str(file_path.parent))
        if not collectors and parent.session.isinitpath(file_path):
            return [collector_of(file_path, parent)]
        suffix = file_path.suffix
        is_data = suffix in CASE_SUFFIXES or suffix.startswith(".json")  # also .jsonc and .json5
        if not collectors and file_path.name != "SKILL.md" and is_data:
            skill, name = skill_and_name_meant(file_path)
            if name:
                path = shown(file_path, self._config)
                self._misnamed[str(skill)] = (path, f"is not read: rename it to {name}")
            else:
                self._unread.append(file_path)
        return collectors

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Record a case file that is collected."""
        self._collected.add(collector.path)

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """Count the case files that cannot be read."""
        self._broken_files += isinstance(node, COLLECTORS)

    # First: what -k or -m deselect is not unchanged.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect the trials of unchanged skills; other items run whatever has changed.

        Then the trials on which the branch has an effect are noted, before an option or a hook
        takes some of them away.

        Raises:
            pytest.UsageError: git failed.
        """
        try:
            if self._since is not None:
                self._deselect_unchanged(items, self._since)
        except GitError as error:
            raise pytest.UsageError(f"--upskill-changed-since: {error}") from None
        with suppress(GitError):  # of which collection tells
            self._expected = {
                # Plain tuples: others cannot be sent from a worker.
                (tuple(item.cell), item.trial.case.id, item.trial.arm): str(item.trial.skill.folder)
                for item in items
                if isinstance(item, TrialItem)
                and (
                    not (item.why_skipped or item.why_not_runnable)
                    or item.trial.case.id in item.trial.skill.queries_of_gone_skills
                )
                and (self.branch is not None and self.branch.affects(item.trial, item.path))
            }

    def _deselect_unchanged(self, items: list[pytest.Item], branch: Branch) -> None:
        unchanged = {
            item
            for item in items
            if isinstance(item, TrialItem)
            and item.trial.skill.name not in branch.rerecorded
            and not branch.affects(item.trial, item.path)
        }
        if unchanged:
            self._config.hook.pytest_deselected(items=[*unchanged])
            items[:] = [item for item in items if item not in unchanged]
            ran = {item.trial.skill.folder for item in items if isinstance(item, TrialItem)}
            if left_out := {item.trial.skill.folder for item in unchanged} - ran:
                self._left_out = f"{counted(len(left_out), 'skill')} unchanged since {branch.ref}"
            self.nothing_changed = "" if items or self._broken_files else self._left_out

    def pytest_deselected(self) -> None:
        """Record that items were collected and deselected."""
        self.deselected = True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note which skills run; let the other files run if only case files are broken."""
        for item in session.items:
            if self.branch is not None and isinstance(item, TrialItem):
                self._folders[item.cell.path] = str(item.trial.skill.folder)
        self._of_no_skill = self._config.stash.get(OF_NO_SKILL, [])
        self._outside = outside_arguments(self._visited, self._collected, self._config)
        if 0 < self._broken_files == session.testsfailed:
            session.config.option.continue_on_collection_errors = True

    def pytest_sessionfinish(self) -> None:
        """Complete the hints; in a worker, send the controller what was found."""
        self._hints += lookalikes(self._unread, self._config)
        if strangers := self._config.stash.get(NOT_COLLECTED, []):
            self._hints.append(line_about(strangers))
        output = getattr(self._config, "workeroutput", {})
        output["upskill_selection"] = {name: getattr(self, name) for name in _SENT}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read what a worker found; all workers find the same, a crashed one sends nothing."""
        vars(self).update(getattr(node, "workeroutput", {}).get("upskill_selection", {}))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print which skills are unchanged, have no cases or were missed."""
        if self._left_out:
            is_all = self.nothing_changed and not self.without_cases
            nothing = ", so there is nothing to run" if is_all else ""
            terminalreporter.line(f"skipped {self._left_out}{nothing}")
        if exitstatus not in RUN_REFUSED and self._config.get_verbosity() > QUIETEST:
            for line in dict.fromkeys(self._missed(exitstatus)):
                write(terminalreporter, f"upskill: {line}", yellow=True)

    def _missed(self, exitstatus: int) -> Iterator[str]:
        """Yield lines about what was missed."""
        not_named = self._not_named(map(Path, sorted(self._outside)))
        yield from (*_lines(self._misspelled()), *self._hints, *_lines(not_named))
        none_ran = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not self.deselected
        yield from _lines(self._losses()) if none_ran else self.losses()
        yield from self.elsewhere()
        given, told = set(arguments_of(self._config)), self._changed_and_unvisited
        missed = [each for each in self._unvisited if each not in told]
        unvisited = {each if each.parent in given else each.parent for each in missed}
        # Workers of an interrupted run do not tell what they have visited.
        if not self.deselected and unvisited and exitstatus != pytest.ExitCode.INTERRUPTED:
            folders = sorted(shown(each, self._config) for each in unvisited)
            them = "it" if len(folders) == 1 else "them"
            yield (
                f"pytest does not look for tests in {listed(folders)}: pass {them} as an argument "
                "to run the skills there"
            )
        elif none_ran and not (self._visited or self._misnamed or self._hints):
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
        others = {self._folders.get(each) for each in measured}
        if self.branch is None or self._folders.get(case_file) in {None, *others}:
            return False
        folders = (Path(self._folders[case_file]), (self._config.rootpath / case_file).parent)
        return any(self.branch.changed(folders))

    def note_lost(self, ran: Iterable[tuple[CellKey, str, Arm]]) -> None:
        """Note the cases of which not every trial ran, though nothing stopped the session.

        Args:
            ran: Cell, case and arm of each trial with a result.
        """
        for cell, case, arm in self._expected.keys() - set(ran):
            self._lost_cases[self._expected[cell, case, arm]].add(f"{CellKey(*cell).skill}::{case}")

    def note_baselines(self, unmeasured: Iterable[str]) -> None:
        """Note case files with a baseline that was not compared, unless only some were to be."""
        known = [path.resolve() for path in arguments_of(self._config)]
        for file in () if self.deselected else sorted({*unmeasured}):
            if any(map((self._config.rootpath / file).is_relative_to, known)):
                self._unmeasured_baselines.append(file)

    def losses(self) -> Iterator[str]:
        """Yield what was measured before and is not any more, a line for each cause."""
        return _lines(self._serious())

    def _serious(self) -> Iterator[_Loss]:
        return self._losses() if self.branch else self._of_baselines(with_skill=False)

    @cached_property
    def without_cases(self) -> dict[str, str]:
        """The changed skills of a pull request of which not all cases run, and why."""
        found = defaultdict[str, list[_Loss]](list)
        for loss in (*self._serious(), *self._deleted()):
            if loss.folder:
                found[os.path.relpath(loss.folder, self._config.rootpath)].append(loss)
        return {folder: "; ".join(_lines(losses)) for folder, losses in found.items()}

    def elsewhere(self) -> Iterator[str]:
        """Yield which changed skills of a pull request other runs of pytest are to measure."""
        known = [path.resolve() for path in arguments_of(self._config)]
        known += (new for _, new in self._departed if new)
        known += (Path(folder).resolve() for folder in self._folders.values())
        changed = self.branch.changed_skills if self.branch else ()
        others = (each for each in changed if not any(map(each.is_relative_to, known)))
        why = "is outside the arguments, and changed: see that another run measures it"
        return _lines(_Loss("", shown(each, self._config), why) for each in others)

    def not_measured(self) -> Iterator[str]:
        """Yield what a pull request changed so that it is not measured, one line each."""
        yield from _lines(self._deleted())
        if self.branch is not None:
            homes = {Path(each).parent for each in (*self._visited, *self._folders.values())}
            yield from self.branch.stale_catalogue(homes)

    def _losses(self) -> Iterator[_Loss]:
        """Yield what is not measured; in a pull request, only what that is the cause of."""
        yield from self._misspelled()
        yield from self._of_baselines(with_skill=False)
        lost = (*self._deleted(), *self._of_baselines(with_skill=False))
        explained = {*self._misnamed, *(loss.folder for loss in lost)}
        others = [each for each in self._empty if str(each) not in explained]
        skill = shown(others[0], self._config) if len(others) == 1 else "SKILL"
        no_cases = f"has no cases: pytest-upskill init {skill} writes a first {CASE_FILE}"
        yield from (_Loss(str(each), each.name, no_cases) for each in others)
        if self.branch is not None:
            yield from self._not_named(self.branch.changed(map(Path, sorted(self._outside))))
            yield from self._taken_away(self.branch)

    def _of_baselines(self, *, with_skill: bool) -> Iterator[_Loss]:
        why = "has a baseline that nothing was compared with: restore it, or delete that too"
        for file in self._unmeasured_baselines:
            folder = str((self._config.rootpath / file).parent)
            if (folder in self._visited) is with_skill:
                yield _Loss(folder, file, why)

    def _misspelled(self) -> Iterator[_Loss]:
        for folder, (path, cure) in sorted(self._misnamed.items()):
            yield _Loss(folder, path, cure)

    def _not_named(self, skills: Iterable[Path]) -> Iterator[_Loss]:
        for skill in skills:
            why = f"was not named as an argument, so not all cases of {skill.name} run"
            yield from (_Loss(str(skill), file, why) for file in self._outside[str(skill)])

    def _taken_away(self, branch: Branch) -> Iterator[_Loss]:
        """Yield what a branch took from the measurement: skills, case files and cases."""
        since = f"since {branch.ref}"
        gone = f"was deleted or moved away {since}: no trial is left: see that this is meant"
        for old, new in self._departed:
            now = f" (now {shown(new, self._config)})" if new else ""
            yield _Loss(str(new or ""), f"{shown(old, self._config)}{now}", gone)
        for file in branch.case_files_gone_without_skill:
            yield _Loss("", file, f"was deleted or moved {since}: see that no case is lost")
        for folder in self._changed_and_unvisited:
            uncollected = f"was changed {since}, but pytest does not collect it"
            yield _Loss(str(folder), shown(folder, self._config), uncollected)
        for skill, cases in sorted(self._lost_cases.items()):
            not_run = "was skipped or deselected, and so not measured"
            yield from (_Loss(skill, case, not_run) for case in sorted(cases))
        for file in sorted(self._of_no_skill) if branch.gone_skills else ():
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
            if self._visited.isdisjoint((str(old), str(new)))
        ]

    @cached_property
    def _changed_and_unvisited(self) -> list[Path]:
        """The folders of skills that a pull request changed, and pytest did not visit."""
        if self.branch is None or not self._unvisited:
            return []
        texts = {start_of(Path(folder, "SKILL.md")) for folder in self._visited}
        others = (each for each in self._unvisited if start_of(each / "SKILL.md") not in texts)
        return [*self.branch.changed(others)]

    @cached_property
    def _empty(self) -> list[Path]:
        """The skills without cases; in a pull request, those of them that are new or changed."""
        discovery = discovery_of(self._config)
        # Cases of a setting may be anywhere, and were collected then.
        visited = map(Path, self._visited.difference(self._folders.values()))
        folders = sorted(visited, key=lambda folder: folder.name)
        empty = (folder for folder in folders if not discovery.skill_has_cases(folder))
        return [*(self.branch.changed(empty) if self.branch else empty)]

    @cached_property
    def _unvisited(self) -> list[Path]:
        """The folders of skills below the arguments of pytest that it has not visited.

        Those are left out that ``--ignore`` names, except in a pull request, which may have set it.
        """
        # A link to a skill that was visited elsewhere is no unvisited skill.
        visited = {Path(folder).resolve() for folder in self._visited}
        start = self._config.invocation_params.dir
        ignored = self._config.getoption("ignore") if self.branch is None else None
        meant = [Path(os.path.abspath(start / each)) for each in ignored or ()]  # noqa: PTH100  links stay
        tops = [each for each in arguments_of(self._config) if each.is_dir()]
        by_setting = self._config.args_source is pytest.Config.ArgsSource.TESTPATHS
        if by_setting and not self._visited and self.branch is None:
            tops = [self._config.rootpath]
        below = (folder for top in tops for folder in skill_folders(top))
        return [
            folder
            for folder in below
            if folder.resolve() not in visited and not any(map(folder.is_relative_to, meant))
        ]


def collector_of(file: Path, parent: pytest.Collector) -> pytest.Collector:
    """Return the collector of a file with cases, or under lint of a skill without any."""
    kind: type[pytest.File] = SkillFile
    discovery, is_skill = discovery_of(parent.config), file.name == "SKILL.md"
    lints = parent.config.getoption("upskill_lint")
    if lints and not (is_skill and discovery.skill_has_cases(file.parent)):
        # Imported here: most sessions lint nothing.
        from pytest_upskill.session.lint_items import LintFile

        kind = LintFile
    collector = kind.from_parent(parent, path=file)
    nodeid = safe_line(collector.nodeid)
    if nodeid == collector.nodeid and "::" not in nodeid:
        return collector
    return UnsafeFile.from_parent(parent, path=file, name=safe_line(file.name), nodeid=nodeid)
