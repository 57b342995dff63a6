"""Which files, skills and trials run, which do not, and hints about those that are missed."""

from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill import CASE_SUFFIXES
from pytest_upskill.cases.discovery import skill_and_name_meant
from pytest_upskill.models.model import ALIASES
from pytest_upskill.project.git import GitError
from pytest_upskill.project.messages import counted, did_you_mean, safe_line
from pytest_upskill.session.branch import Branch
from pytest_upskill.session.case_files import (
    arguments_of,
    discovery_of,
    lookalikes,
    outside_arguments,
    shown,
)
from pytest_upskill.session.items import COLLECTORS, OF_NO_SKILL, SkillFile, TrialItem, UnsafeFile
from pytest_upskill.session.losses import Found, Losses
from pytest_upskill.session.messages import QUIETEST, RUN_REFUSED, write
from pytest_upskill.session.settings import SETTINGS
from pytest_upskill.session.untrusted_files import NOT_COLLECTED, line_about


class Selection:
    """Plugin that deselects the trials of unchanged skills, and prints which skills did not run.

    The latter have no cases, or pytest does not look for them. A worker sends the controller what
    it found.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        settings = config.stash.get(SETTINGS, None)  # None under --upskill-lint
        since, ref = (settings.changed_since, settings.ref) if settings else (None, None)
        self._since = Branch(config, since) if since else None
        """The branch by which trials are deselected as unchanged; None to deselect none."""
        self.found = Found()
        branch = Branch(config, ref) if ref and ref != since else self._since
        self.losses = Losses(config, branch, self.found)
        self._unread: list[Path] = []
        """Files from which no cases are read, though they have a suffix of case files."""
        self._collected: set[Path] = set()
        """Files that were collected."""
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
            self.found.visited.add(str(file_path.parent))
        if not collectors and parent.session.isinitpath(file_path):
            return [collector_of(file_path, parent)]
        suffix = file_path.suffix
        is_data = suffix in CASE_SUFFIXES or suffix.startswith(".json")  # also .jsonc and .json5
        if not collectors and file_path.name != "SKILL.md" and is_data:
            skill, name = skill_and_name_meant(file_path)
            if name:
                path = shown(file_path, self._config)
                self.found.misnamed[str(skill)] = (path, f"is not read: rename it to {name}")
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
        branch = self.losses.branch
        with suppress(GitError):  # of which collection tells
            self.found.expected = {
                # Plain tuples: others cannot be sent from a worker.
                (tuple(item.cell), item.trial.case.id, item.trial.arm): str(item.trial.skill.folder)
                for item in items
                if isinstance(item, TrialItem)
                and (
                    not (item.why_skipped or item.why_not_runnable)
                    or item.trial.case.id in item.trial.skill.queries_of_gone_skills
                )
                and (branch is not None and branch.affects(item.trial))
            }

    def _deselect_unchanged(self, items: list[pytest.Item], branch: Branch) -> None:
        unchanged = {
            item
            for item in items
            if isinstance(item, TrialItem)
            and item.trial.skill.name not in branch.rerecorded
            and not branch.affects(item.trial)
        }
        if unchanged:
            self._config.hook.pytest_deselected(items=[*unchanged])
            items[:] = [item for item in items if item not in unchanged]
            ran = {item.trial.skill.folder for item in items if isinstance(item, TrialItem)}
            if left_out := {item.trial.skill.folder for item in unchanged} - ran:
                skills = counted(len(left_out), "skill")
                self.found.left_out = f"{skills} unchanged since {branch.ref}"
            self.found.nothing_changed = "" if items or self._broken_files else self.found.left_out

    def pytest_deselected(self) -> None:
        """Record that items were collected and deselected."""
        self.found.deselected = True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note which skills run; let the other files run if only case files are broken."""
        for item in session.items:
            if self.losses.branch is not None and isinstance(item, TrialItem):
                self.found.folders[item.cell.path] = str(item.trial.skill.folder)
        self.found.of_no_skill = self._config.stash.get(OF_NO_SKILL, [])
        self.found.outside = outside_arguments(self.found.visited, self._collected, self._config)
        if 0 < self._broken_files == session.testsfailed:
            session.config.option.continue_on_collection_errors = True

    def pytest_sessionfinish(self) -> None:
        """Complete the hints; in a worker, send the controller what was found."""
        self.found.hints += lookalikes(self._unread, self._config)
        if strangers := self._config.stash.get(NOT_COLLECTED, []):
            self.found.hints.append(line_about(strangers))
        output = getattr(self._config, "workeroutput", {})
        output["upskill_selection"] = vars(self.found)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read what a worker found; all workers find the same, a crashed one sends nothing."""
        vars(self.found).update(getattr(node, "workeroutput", {}).get("upskill_selection", {}))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print which skills are unchanged, have no cases or were missed."""
        if self.found.left_out:
            is_all = self.found.nothing_changed and not self.losses.without_cases
            nothing = ", so there is nothing to run" if is_all else ""
            terminalreporter.line(f"skipped {self.found.left_out}{nothing}")
        if exitstatus not in RUN_REFUSED and self._config.get_verbosity() > QUIETEST:
            for line in dict.fromkeys(self.losses.missed(exitstatus)):
                write(terminalreporter, f"upskill: {line}", yellow=True)


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
