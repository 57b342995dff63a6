"""Case files and trials as pytest's collectors and items."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

# pytest has no public access to whether it will skip an item.
from _pytest.skipping import evaluate_skip_marks, evaluate_xfail_marks

from pytest_upskill.cases.history import with_history
from pytest_upskill.cases.lint import checks_that_tell_nothing
from pytest_upskill.cases.load import NoSkillError, SkillError, load_skills, pooled
from pytest_upskill.cases.skill import Skill
from pytest_upskill.cases.skill_files import with_files
from pytest_upskill.cases.source.files import Unreadable
from pytest_upskill.checks import CheckError
from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.wording import failure
from pytest_upskill.grading.grade import Answer, grade, sandboxed_of, text_checks_of
from pytest_upskill.project.git import GitError
from pytest_upskill.project.messages import counted, listed, safe_line
from pytest_upskill.report.junit import trial_properties
from pytest_upskill.session.branch import branch_point
from pytest_upskill.session.case_files import catalogues_of, discovery_of, shown
from pytest_upskill.session.messages import GROUPED_WARNINGS
from pytest_upskill.session.resources import RESOURCES, decider, extensions_of
from pytest_upskill.session.results import TrialRecord, failure_repr
from pytest_upskill.session.settings import NO_MODELS, SETTINGS, Settings, runs_tests
from pytest_upskill.session.untrusted_files import HooksOfParent
from pytest_upskill.trials.needs import UNDECIDABLE, why_skipped
from pytest_upskill.trials.result import CellKey, TrialResult
from pytest_upskill.trials.trial import Trial, plan

ANSWERS = pytest.StashKey[Callable[[str], list[Answer]]]()
"""Function that waits for the answers to the trial with a key; absent where no test runs."""
_READ = pytest.StashKey[dict[Path, list[Skill] | SkillError]]()
"""The skills of each file that was read, or why there are none; a suite's are needed twice."""
_SUITES = pytest.StashKey[dict[Path, tuple[list[Skill], int]]]()
"""By suite its skills with the cases of all files, and how many files cannot be read."""
_PLANS = pytest.StashKey[dict[tuple[Path, Path], list["_Plan"]]]()
"""The trials of each skill of a suite, by the suite and the folder of the skill."""
OF_NO_SKILL = pytest.StashKey[list[str]]()
"""Case files whose cases belong to no known skill."""


class ItemFailed(AssertionError):  # noqa: N818  a failed test, not an error of the code
    """Too few runs of a trial passed, or lint has findings; the message is the failure report."""


class ItemOutsidePackages(HooksOfParent, pytest.Item):
    """An item that belongs to no Python package, even if its folder is one.

    To set a package up, pytest imports its ``__init__.py``. Skills need no such import.
    """

    def listchain(self) -> list[Any]:
        """Return this node and those above it, except Python packages."""
        return [node for node in super().listchain() if not isinstance(node, pytest.Package)]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the report of a failed case or the findings, without a traceback."""
        # With -W error a warning is an exception.
        if isinstance(excinfo.value, ItemFailed | pytest.UsageError | pytest.PytestWarning):
            path, line, _ = self.reportinfo()
            return failure_repr(str(excinfo.value), os.fspath(path), (line or 0) + 1)
        return super().repr_failure(excinfo, style)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A trial, and what is known of it before it runs."""

    trial: Trial
    index: int
    """Index among the trials of the skill."""
    cell: CellKey
    """Its path is that of the case file or the suite from the rootdir, and the skill's folder if it
    has several skills.

    That of a file is the beginning of the node id, but of files outside the rootdir, pytest makes
    node ids that are no paths, and not unique.
    """
    planned: Mapping[CellKey, int]
    """Numbers of trials of the skill's cells if all run."""
    why_skipped: str | None
    """Why no answer is requested; None if one is."""
    unusable: str | None
    """Why the trial cannot be run, which is an error; None if it can."""


class TrialItem(ItemOutsidePackages):
    """One case on one model in one arm."""

    def __init__(self, *, plan: _Plan, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.trial = trial = plan.trial
        self.index, self.cell, self.planned = plan.index, plan.cell, plan.planned
        self.why_skipped = plan.why_skipped
        place = f"{os.path.relpath(self.path, self.config.rootpath)}:{trial.case.place}"
        self.why_not_runnable = f"{safe_line(place)}: {plan.unusable}" if plan.unusable else None
        """Why the trial cannot be run, with its place; None if it can."""
        self.result: TrialResult | None = None
        skill, case, model = trial.skill.name, trial.case.id, trial.model.label
        self.key = f"{self.cell.path}::{trial.name}"
        """What tells the trial from all others of the session, in each of its processes."""
        self.add_marker(pytest.mark.upskill(skill=skill, case=case, model=model, arm=trial.arm))
        if self.why_skipped:
            self.add_marker(pytest.mark.skip(reason=safe_line(self.why_skipped)))
        # The rest of what -k finds is in the item's name, and the skill's is on the file.
        self.extra_keyword_matches.update(trial.case.tags)

    @property
    def is_skipped(self) -> bool:
        """Whether it needs no answer."""
        xfail = None if self.config.getoption("runxfail", False) else evaluate_xfail_marks(self)
        does_not_run = xfail is not None and not xfail.run
        return bool(self.why_not_runnable or does_not_run or evaluate_skip_marks(self))

    def setup(self) -> None:
        """Wait for the answers and grade them; fail if missing runs leave the result undecided."""
        if self.why_not_runnable:
            pytest.fail(self.why_not_runnable, pytrace=False)
        if not runs_tests(self.config):
            return
        if skip := evaluate_skip_marks(self):  # where pytest's plugin for it is disabled
            raise _skipped_at_its_line(skip.reason)
        answers = self.config.stash[ANSWERS](self.key)
        for answer in answers:
            if answer.why_not_sent:
                raise _skipped_at_its_line(safe_line(answer.why_not_sent))
        self.result = grade(self.trial, answers, decider(self.ihook, self.trial.case))
        if not self.result.planned:
            raise _skipped_at_its_line(UNDECIDABLE)
        self.user_properties[:] = trial_properties(self.result)
        # A replay must contain every run, even one that could not change the result.
        replay = self.config.stash[SETTINGS].cache_mode == "replay"
        if not self.result.settled or (replay and self.result.errors):
            pytest.fail("\n".join(dict.fromkeys(map(safe_line, self.result.errors))), pytrace=False)

    def runtest(self) -> None:
        """Fail if too few runs passed; arms to compare with never fail."""
        assert self.result is not None
        if self.result.failed:
            raise ItemFailed("\n".join([failure(self.result), *self._not_quoted(self.result)]))
        if self.result.decides and self.result.left_open:
            passes, runs = self.result.passes, counted(len(self.result.runs), "run")
            why = f"{passes} of {runs} passed, and --upskill-early-stop requested no more"
            raise _skipped_at_its_line(why)

    def _not_quoted(self, result: TrialResult) -> Iterator[str]:
        """Yield that the skill has what a check looks for, where ``offline`` did not quote it."""
        if self.trial.model.is_language_model or self.trial.arm != "with_skill":
            return
        answer, skill = result.runs[0].completion.text, self.trial.skill.text
        for check in text_checks_of(self.trial.case):
            with suppress(CheckError):
                if check.check(skill).passed and not check.check(answer).passed:
                    what = listed([*map(repr, check.wanted)]) or f"what {check.name} looks for"
                    yield safe_line(
                        f"the skill has {what}, in a passage that shares too few words with the "
                        "question for offline to quote it"
                    )
                    return
        yield "offline only quotes: the skill lacks this, or a model has to write the answer"

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Return the case's file, line (pytest counts from 0) and title."""
        return self.path, self.trial.case.line - 1, f"{self.trial.skill.name}: {self.name}"

    def record(self) -> TrialRecord | None:
        """Return the result with its place in the session, None before the trial is graded."""
        if self.result is None:
            return None
        trial, skill, model = self.trial, self.trial.skill, self.trial.model
        is_answered = any(case.is_answered for case in skill.cases)
        cell = Cell(
            path=self.cell.path,
            skill=skill.name,
            model=model.label,
            resolved=model.resolved,
            gate=skill.gate,
            planned=self.planned[self.cell],
            trials=(),
            ref=skill.ref,
            history=self._history(),
            past_unknown=skill.past_unknown,
            # Once: where a skill has lifts, they tell.
            case_changes="" if trial.chooses and is_answered else skill.case_changes,
            other_cases=skill.other_cases,
        )
        return TrialRecord(key=self.cell, cell=cell, index=self.index, result=self.result)

    def _history(self) -> str:
        """Return why the trial's arm has no earlier version; empty if there is one."""
        skill = self.trial.skill
        if not (self.trial.chooses and skill.ref):
            return skill.history
        why = skill.history or f"queries: no description changed since {skill.ref}: not compared"
        return "" if skill.listed_before else why


def _skipped_at_its_line(reason: str) -> BaseException:
    """Return what skips an item at the line of its case; pytest's own would name a line here."""
    return pytest.skip.Exception(reason, _use_item_location=True)


def needing_answers(items: Iterable[pytest.Item]) -> list[TrialItem]:
    """Return the items that need answers: trials that are not skipped."""
    return [item for item in items if isinstance(item, TrialItem) and not item.is_skipped]


class SkillFile(HooksOfParent, pytest.File):
    """A case file of one or more skills, or a ``SKILL.md`` that is named instead of its folder."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Make an item for each trial; in a file for several skills, a collector for each skill."""
        if self.name == "SKILL.md":
            folder = shown(self.path.parent, self.config)
            raise self.CollectError(
                f"SKILL.md contains no cases: name its folder instead, {folder}"
            )
        if SETTINGS not in self.config.stash:
            raise self.CollectError(f"{self.name}: {NO_MODELS}")
        path = shown(self.path, self.config)
        try:
            skills = _skills_in(self.path, self)
        except SkillError as error:
            # Probably another tool's file: an error only if it was named on the command line.
            if isinstance(error, NoSkillError) and not self.session.isinitpath(self.path):
                self.config.stash.setdefault(OF_NO_SKILL, []).append(path)
                self._warn([str(error)])
                return
            raise self.CollectError(str(error)) from None
        for skill in skills:
            idle = (each.at(path) for each in checks_that_tell_nothing(skill))
            self._warn([*skill.warnings, *skill.hints, *idle])
            self._check_name(skill)
            if skill.shares_file:
                name = _name_of(skill, skills, self.config)
                yield SkillCases.from_parent(self, name=name, skill=skill)
            else:
                self.extra_keyword_matches.add(skill.name)
                yield from items_of(self, skill)

    def _check_name(self, skill: Skill) -> None:
        """Warn if another skill beside this one has its name.

        Raises:
            CollectError: A model is to choose between this skill and one of its name.
        """
        if ambiguous := catalogues_of(self.config).why_ambiguous(skill):
            line = f"{shown(skill.folder / 'SKILL.md', self.config)}: name: {ambiguous}"
            if any(case.trigger for case in skill.cases):
                raise self.CollectError(line)
            self._warn([line])

    def _warn(self, warnings: Iterable[str]) -> None:
        """Add warnings; raise a collect error if the user's filters turn some into errors."""
        if errors := self.config.stash[GROUPED_WARNINGS].note_lines(warnings):
            raise self.CollectError("\n".join(errors))


class SkillCases(HooksOfParent, pytest.Collector):
    """The cases of one skill in a file for several skills."""

    def __init__(self, *, skill: Skill, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.skill = skill
        self.extra_keyword_matches.add(skill.name)

    def collect(self) -> Iterator[TrialItem]:
        """Make an item for each trial."""
        if self.skill.broken:
            raise self.CollectError(self.skill.broken)
        yield from items_of(self, self.skill)


def _skills_in(file: Path, node: pytest.Collector) -> list[Skill]:
    """Return the skills of a case file, as `load_skills` does, which may raise."""
    read = node.config.stash.setdefault(_READ, {})
    if file not in read:
        name, discovery = shown(file, node.config), discovery_of(node.config)
        extensions = extensions_of(node.ihook, node.config.stash[RESOURCES].languages)
        try:
            read[file] = load_skills(file, shown=name, extensions=extensions, discovery=discovery)
        except SkillError as error:
            read[file] = error
    found = read[file]
    if isinstance(found, SkillError):
        raise found
    return found


def _name_of(skill: Skill, skills: Iterable[Skill], config: pytest.Config) -> str:
    """Return what tells a skill from others: of folders with the same name it is the path."""
    is_one = sum(each.folder.name == skill.folder.name for each in skills) == 1
    return skill.folder.name if is_one else os.path.relpath(skill.folder, config.rootpath)


def _files_below(folder: Path, node: pytest.Collector) -> Iterator[Path]:
    """Yield the files that pytest would come across in and below a folder."""
    hooks, config = node.ihook, node.config
    for path in sorted(folder.iterdir()):
        is_named = node.session.isinitpath(path, with_parents=True)
        if is_named or not hooks.pytest_ignore_collect(collection_path=path, config=config):
            yield from _files_below(path, node) if path.is_dir() else [path]


def _suite_at(folder: Path, node: pytest.Collector) -> tuple[list[Skill], int]:
    """Return the skills of a suite with the cases of all its files, also those not to run.

    Returns:
        The skills, and how many of the files cannot be read.
    """
    suites = node.config.stash.setdefault(_SUITES, {})
    if folder not in suites:
        found, unread, is_case_file = list[Skill](), 0, discovery_of(node.config).is_case_file
        for file in _files_below(folder, node):
            try:
                if node.session.isinitpath(file) or is_case_file(file):
                    found += _skills_in(file, node)
            except SkillError as error:
                unread += not isinstance(error, NoSkillError)
        skills = pooled(each for each in found if each.suite == folder and not each.broken)
        shares = len(skills) > 1 or any(each.shares_file for each in skills)
        suites[folder] = [replace(each, shares_file=shares) for each in skills], unread
    return suites[folder]


def _plans(skill: Skill, node: pytest.Collector) -> Iterator[_Plan]:
    """Yield the trials of a skill and its suite, with skip markers where one cannot run."""
    settings, compilers = node.config.stash[SETTINGS], node.config.stash[RESOURCES].compilers
    name, unread = node.name, 0
    if skill.suite:
        skills, unread = _suite_at(skill.suite, node)
        skill = next(each for each in skills if each.folder == skill.folder)
        name = _name_of(skill, skills, node.config)
    path = os.path.relpath(skill.case_file, node.config.rootpath)
    path += f"::{name}" if skill.shares_file else ""
    lacking = {}
    for case in skill.cases:
        lacks = (compilers().missing(check) for check in sandboxed_of(case))
        lacking[case.id] = next(filter(None, lacks), None)
    planned = Counter[CellKey]()
    for index, trial in enumerate(_trials_of(skill, node)):
        reason = _reason_to_skip(trial, settings)
        lack = None if trial.chooses else lacking[trial.case.id]
        unusable: str | None = trial.case.unwritten
        if settings.require_compilers:
            unusable, lack = unusable or lack, None
        cell = CellKey(path, skill.name, trial.model.label, trial.chooses)
        planned.setdefault(cell, unread)
        # A baseline needs every case: where a compiler is missing, none is written.
        planned[cell] += int(not reason and (settings.baseline_update or not lack))
        yield _Plan(
            trial=trial,
            index=index,
            cell=cell,
            planned=planned,
            why_skipped=reason or lack,
            unusable=unusable,
        )


def items_of(parent: pytest.Collector, skill: Skill) -> Iterator[TrialItem]:
    """Make the items of a skill for the cases of a file.

    Args:
        parent: Collector of the items.
        skill: The skill and the cases of its file.

    Raises:
        pytest.Collector.CollectError: The old version of the skill cannot be read from git, or its
            folder cannot be installed for an agent.
    """
    plans: Iterable[_Plan]
    if skill.suite:
        known, key = parent.config.stash.setdefault(_PLANS, {}), (skill.suite, skill.folder)
        if key not in known:
            known[key] = [*_plans(skill, parent)]
        own = os.path.relpath(parent.path, skill.suite)
        plans = (each for each in known[key] if each.trial.case.file == own)
    else:
        plans = _plans(skill, parent)
    for each in plans:
        name = each.trial.name
        # Explicit: pytest 9.2 does not recognize a parsed id in --lf (pytest#15045).
        yield TrialItem.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}", plan=each)


def _trials_of(skill: Skill, parent: pytest.Collector) -> Iterator[Trial]:
    """Yield a skill's trials, with what its arms and the models' agents need."""
    settings, catalogues = parent.config.stash[SETTINGS], catalogues_of(parent.config)
    try:
        if any(model.agent for model in settings.models):
            skill = with_files(skill)
        if settings.ref is not None:
            extensions = extensions_of(parent.ihook, parent.config.stash[RESOURCES].languages)
            point = branch_point(parent.config, settings.ref)
            skill = with_history(skill, point, extensions, catalogues)
    except GitError as error:
        raise parent.CollectError(f"--upskill-compare: {error}") from None
    except Unreadable as error:
        raise parent.CollectError(str(error)) from None
    yield from plan(
        skill,
        settings.models,
        runs=settings.runs,
        baseline_runs=settings.baseline_runs,
        min_pass_rate=settings.min_pass_rate,
        max_tokens=settings.max_tokens,
        early_stop=settings.early_stop,
        judge=settings.judge,
        catalogues=catalogues,
    )


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


class UnsafeFile(HooksOfParent, pytest.File):
    """A case file whose path is unsafe to print or to use in a node id."""

    def collect(self) -> Iterator[pytest.Item]:
        """Raise a collect error: node ids and reports would contain the path."""
        raise self.CollectError(
            f"{self.nodeid}: the name of the file or a folder contains control characters, a CI "
            f"runner's command or the separator of pytest's node ids, '::': rename it"
        )


COLLECTORS = (SkillFile, SkillCases, UnsafeFile)
"""What collects case files and their skills."""
