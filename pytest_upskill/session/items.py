"""Trials as pytest items."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import pytest

from pytest_upskill.figures.wording import ANSWER, failure, quoted_lines
from pytest_upskill.grading.grade import Answer, grade
from pytest_upskill.project.messages import safe_line
from pytest_upskill.report.junit import trial_properties
from pytest_upskill.report.trajectory import last_steps
from pytest_upskill.session.case_files import path_from
from pytest_upskill.session.plugin_hooks import decider
from pytest_upskill.session.settings import SETTINGS, runs_tests
from pytest_upskill.trials.needs import UNDECIDABLE
from pytest_upskill.trials.result import CellKey, TrialRecord, TrialResult
from pytest_upskill.trials.trial import Trial, has_new_description

ANSWERS = pytest.StashKey[Callable[["TrialItem"], list[Answer]]]()
"""Function that waits for the answers to all runs of an item's trial, and returns them.

It is the method of `FetchedAnswers` in the only process, of `HandedAnswers` in a worker of
pytest-xdist.
"""


class CaseFailed(AssertionError):  # noqa: N818  a failed test, not an error of the code
    """Too few runs of a trial passed; the message is the failure report."""


class ItemOutsidePackages(pytest.Item):
    """An item that belongs to no Python package, even if its folder is one.

    To set a package up, pytest imports its ``__init__.py``. Skills need no such import.
    """

    def listchain(self) -> list[Any]:
        """Return this node and those above it, except Python packages."""
        return [node for node in super().listchain() if not isinstance(node, pytest.Package)]


class TrialItem(ItemOutsidePackages):
    """One case on one model in one arm."""

    def __init__(
        self,
        *,
        trial: Trial,
        index: int,
        planned_trials: int,
        why_skipped: str | None,
        why_not_runnable: str | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.trial = trial
        self.index = index
        self.planned_trials = planned_trials
        """Number of trials of the cell if all run."""
        self.why_skipped = why_skipped
        """Why no answer is requested; None if one is."""
        self.why_not_runnable = why_not_runnable
        """What this machine lacks to run the trial, which is an error; None if it lacks nothing."""
        self.result: TrialResult | None = None
        skill, case, model = trial.skill.name, trial.case.id, trial.model.label
        self.add_marker(pytest.mark.upskill(skill=skill, case=case, model=model, arm=trial.arm))
        if why_skipped:
            self.add_marker(pytest.mark.skip(reason=safe_line(why_skipped)))
        # The rest of what -k finds is in the item's name, and the skill's is on the file.
        self.extra_keyword_matches.update(trial.case.tags)

    @cached_property
    def case_path(self) -> str:
        """The case file's path from the rootdir, and the skill's folder in a file of several.

        It is the beginning of the node id, but of files outside the rootdir, pytest makes node ids
        that are no paths, and not unique.
        """
        path = path_from(self.config.rootpath, self.path)
        if self.parent is None or not self.trial.skill.shares_file:
            return path
        return f"{path}::{self.parent.name}"

    @property
    def key(self) -> str:
        """What tells the trial from all others of the session, in each of its processes."""
        return f"{self.case_path}::{self.trial.name}"

    def setup(self) -> None:
        """Wait for the answers and grade them; fail if missing runs leave the result undecided."""
        if self.why_not_runnable:
            pytest.fail(self.why_not_runnable, pytrace=False)
        if not runs_tests(self.config):
            return
        if skip := self.get_closest_marker("skip"):  # where pytest's plugin for it is disabled
            raise pytest.skip.Exception(skip.kwargs.get("reason", ""), _use_item_location=True)
        answers = self.config.stash[ANSWERS](self)
        for answer in answers:
            if answer.why_not_sent:
                raise pytest.skip.Exception(safe_line(answer.why_not_sent), _use_item_location=True)
        self.result = grade(self.trial, answers, decider(self.ihook, self.trial.case))
        if not self.result.planned:
            raise pytest.skip.Exception(UNDECIDABLE, _use_item_location=True)
        self.user_properties[:] = trial_properties(self.result)
        # A replay must contain every run, even one that could not change the result.
        replay = self.config.stash[SETTINGS].cache_mode == "replay"
        if not self.result.settled or (replay and self.result.errors):
            pytest.fail("\n".join(dict.fromkeys(map(safe_line, self.result.errors))), pytrace=False)

    def runtest(self) -> None:
        """Fail if too few runs passed; arms to compare with never fail."""
        assert self.result is not None
        if self.result.decides and not self.result.passed:
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
            path=self.case_path,
            index=self.index,
            planned=self.planned_trials,
            gate=self.trial.skill.gate,
            ref=self.trial.skill.ref,
            history=self._history(),
            past_unknown=self.trial.skill.past_unknown,
            result=self.result,
        )

    def _history(self) -> str:
        """Return why the trial's arm has no earlier version; empty if there is one."""
        skill = self.trial.skill
        if not self.trial.chooses or skill.before is None or has_new_description(skill):
            return skill.history
        return f"description unchanged since {skill.ref}: not compared"

    @property
    def cell_key(self) -> CellKey:
        """The cell that the trial belongs to."""
        trial = self.trial
        return CellKey(self.case_path, trial.skill.name, trial.model.label, trial.chooses)

    def missed_answers(self) -> list[tuple[str, str]]:
        """Return each different answer that did not pass, quoted, and an agent's last steps."""
        runs = self.result.runs if self.result else ()
        missed = dict.fromkeys(run.completion.text for run in runs if not run.passed)
        steps = [
            (
                f"last steps of the agent in run {number}",
                f"{last_steps(run.completion.agent_run)}\n",
            )
            for number, run in enumerate(runs, 1)
            if run.completion.agent_run and not run.passed
        ]
        return [*((ANSWER, quoted_lines(text)) for text in missed), *steps[:1]]

    def process_lines(self) -> list[tuple[str, str]]:
        """Return what an agent was expected to do and did, as a section of a report."""
        runs = self.result.runs if self.result else ()
        lines = [
            f"run {number}: {'yes' if check.passed else 'no'}: {check.message}"
            for number, run in enumerate(runs, 1)
            for check in run.process
        ]
        return [("what the agent did (reported, never counted)", "\n".join(lines))] if lines else []


def needing_answers(items: Iterable[pytest.Item]) -> list[TrialItem]:
    """Return the items that need answers: trials that are not skipped."""
    return [item for item in items if isinstance(item, TrialItem) and not _is_skipped(item)]


def _is_skipped(item: TrialItem) -> bool:
    if item.why_not_runnable is not None or item.get_closest_marker("skip") is not None:
        return True
    if not item.config.pluginmanager.has_plugin("skipping"):
        return False
    if any(True in _conditions(mark) for mark in item.iter_markers("skipif")):
        return True
    # The first mark that applies decides, and only pytest can evaluate a condition that is text.
    marks = () if item.config.getoption("runxfail") else tuple(item.iter_markers("xfail"))
    return bool(marks) and all(
        mark.kwargs.get("run") is False and (True in _conditions(mark) or not _conditions(mark))
        for mark in marks
    )


def _conditions(mark: pytest.Mark) -> tuple[object, ...]:
    return (mark.kwargs["condition"],) if "condition" in mark.kwargs else mark.args
