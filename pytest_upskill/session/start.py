"""A session with chosen models, step by step.

1. Collect: `SkillFile` makes the items, `Selection` deselects some, in every process that collects.
2. Plan and fetch: `FetchedAnswers`, or under pytest-xdist `Controller` and in a worker
   `HandedAnswers`, checks that all answers can be had, and fetches them while the items wait.
3. Decide and report: `Reporting`, in the process that reports.

`Outgoing` attaches the results to reports and cleans all text that leaves.
"""

import platform
from collections.abc import Generator
from dataclasses import fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cases.skill import GateRule
from pytest_upskill.figures import baseline
from pytest_upskill.figures.gate import Gate, decide_gates
from pytest_upskill.report import exit_code
from pytest_upskill.report.document import Report, Session
from pytest_upskill.session.annotations import annotations, warnings_of
from pytest_upskill.session.case_files import catalogues_of, check_case_files
from pytest_upskill.session.fetching import FetchedAnswers, Fetching
from pytest_upskill.session.items import ANSWERS
from pytest_upskill.session.losses import Losses
from pytest_upskill.session.messages import GROUPED_WARNINGS, GroupedWarnings, write
from pytest_upskill.session.options import usage_errors
from pytest_upskill.session.outgoing import Outgoing, redact_logs
from pytest_upskill.session.progress import interruptible
from pytest_upskill.session.report_files import Files, add_to_junit
from pytest_upskill.session.resources import RESOURCES, set_up
from pytest_upskill.session.results import Outcome, Records, report_as_test, report_gate
from pytest_upskill.session.selection import Selection
from pytest_upskill.session.settings import SETTINGS, Settings, runs_tests
from pytest_upskill.session.terminal import Terminal
from pytest_upskill.trials.needs import skip_lines, skip_reasons

_RAN_TO_THE_END = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
"""Other codes come from Ctrl-C, from pytest.exit() and from errors."""


def start(config: pytest.Config) -> None:
    """Read the settings and register the plugins that this process needs.

    Raises:
        pytest.UsageError: The value of an option is invalid, or a plugin's hook fails.
    """
    plugins = config.pluginmanager
    grouped = config.stash[GROUPED_WARNINGS] = GroupedWarnings(config)
    plugins.register(grouped, "upskill-grouped-warnings")
    if not hasattr(config, "workerinput"):  # there, the controller has looked
        check_case_files(config)
    if config.getoption("upskill_lint"):
        plugins.register(Selection(config), "upskill-selection")
        return
    settings, resources = set_up(config)
    catalogues_of(config)  # a bad file ends the run before it begins
    plugins.register(Outgoing(resources.redactor), "upskill-outgoing")
    config.add_cleanup(redact_logs(resources.redactor))
    selection = Selection(config)
    plugins.register(selection, "upskill-selection")
    if hasattr(config, "workerinput"):
        from pytest_upskill.session.xdist import HandedAnswers

        handed = HandedAnswers(Path(config.workerinput["upskill"]))
        config.stash[ANSWERS] = handed.wait_for_answers
        plugins.register(handed, "upskill-answers")
        return
    answers: Fetching | None = None
    if settings.prune:
        from pytest_upskill.session.without_tests import Prune

        plugins.register(Prune(config, selection), "upskill-prune")
    elif config.getoption("dist", "no") == "no":
        answers = fetched = FetchedAnswers(config)
        config.stash[ANSWERS] = fetched.wait_for_answers
    else:
        from pytest_upskill.session.xdist import Controller

        answers = Controller(config)
    if answers is not None:
        plugins.register(answers, "upskill-answers")
    plugins.register(Reporting(config, selection.losses, answers), "upskill-reporting")


class Reporting:
    """Plugin of the process that reports: the only one, or the controller of pytest-xdist.

    Where tests ran, `report.exit_code` decides the exit code, as it does for merged reports. Only
    two are decided here: 4 instead of 0 where a file could not be written, and 0 instead of 5 where
    no test ran because no skill changed.

    Raises:
        pytest.UsageError: A baseline cannot be used.
    """

    def __init__(self, config: pytest.Config, losses: Losses, answers: Fetching | None) -> None:
        self._config, self._losses, self._answers = config, losses, answers
        self._settings, self._resources = config.stash[SETTINGS], config.stash[RESOURCES]
        self._measures = runs_tests(config) and not (self._settings.dry_run or self._settings.prune)
        self._records = Records()
        self._gates: list[Gate] = []
        """The gate of each cell, once all trials have run."""
        self._updates: list[baseline.Update] = []
        """Outcome of each baseline update, under --upskill-baseline-update."""
        self._report: Report | None = None
        """The session as a value; None before its end, and where no test was to run."""
        self._was_interrupted = False
        self._unreadable: list[list[str]] = []
        """What is wrong with each file or case that cannot be used, one line for each mistake."""
        self._terminal = Terminal(config)
        config.pluginmanager.register(self._terminal, "upskill-terminal")
        self._files = Files(config)
        self._recorded: baseline.Baselines | None = None
        """The baselines to compare with; those that are only to be updated decide nothing."""
        if self._settings.compare == "baseline" or self._settings.baseline_update:
            models = [model.label for model in self._settings.models]
            with usage_errors(baseline.BaselineError):
                recorded = baseline.read_baselines(self._settings.baselines_dir, models)
            self._recorded = recorded if self._settings.compare == "baseline" else None

    @property
    def has_decided(self) -> bool:
        """Whether the session has run tests, or found that no skill changed."""
        return self._report is not None or bool(self._losses.found.nothing_changed)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record why a file could not be collected; that of Python has a traceback."""
        if report.failed:
            lines = str(report.longrepr).splitlines()
            is_python = report.nodeid.endswith(".py")
            unread = [f"{report.nodeid}: it cannot be imported"] if is_python else lines
            self._unreadable.append(unread)

    # Last: after pytest's writer of JUnit XML.
    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a trial's result, or why it could not begin, as for a placeholder."""
        is_of_trial = hasattr(report, "upskill")
        if report.failed and report.when == "setup" and is_of_trial and report.upskill is None:
            # The message begins with the place of the case, unless the run was stopped.
            file, why = report.nodeid.partition("::")[0], str(report.longrepr)
            self._unreadable += [[why]] if why.startswith(f"{file}:") else []
        self._records.add(report)
        add_to_junit(self._config, report)

    # Last, so innermost: gates are reported before the terminal ends its progress line.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the last test stop fetching, then decide; also after -x or Ctrl-C."""
        if self._measures:
            self._files.note_changes()
        ended = False
        try:
            with interruptible():
                result = yield
            ended = not (session.shouldfail or self._resources.budget.stopped)
            return result
        finally:
            if self._answers is not None:
                self._answers.stop()
            self._decide(session)
            if ended:
                self._losses.note_lost(self._records.trials)
                measured = {baseline.baseline_path(gate.cell) for gate in self._gates}
                unmeasured = {*(self._recorded or ())} - measured
                self._losses.note_baselines(map(baseline.case_file_of, unmeasured))
            if self._measures:
                self._report_skills_without_cases(session)
            if self._settings.baseline_update:
                self._update_baselines()

    def _decide(self, session: pytest.Session) -> None:
        """Decide the gate of every cell, and report it as a test."""
        settings = self._settings
        cells = self._records.cells(settings)
        self._gates = decide_gates(cells, settings.thresholds, self._recorded)
        if settings.baseline_update:
            # This run writes the baseline that the advice is to record.
            for index, gate in enumerate(self._gates):
                if gate.comparison and gate.comparison.lacking:
                    self._gates[index] = replace(gate, comparison=None)
        # What ``offline`` chose by words is no test.
        gates = [gate for gate in self._gates if not gate.cell.is_by_words]
        self._terminal.tell_the_past(gates)
        if gates:
            self._terminal.announce_gates()
        # Those of a file after each other, as pytest prints its name once for tests in a row.
        for gate in sorted(gates, key=lambda each: each.cell.path):
            report_gate(session, gate)

    def _report_skills_without_cases(self, session: pytest.Session) -> None:
        """Report each changed skill without cases as a test, which fails where they are to."""
        outcome: Outcome = "failed" if "cases" in self._settings.fail_on else "skipped"
        for skill, reason in self._losses.without_cases.items():
            nodeid = f"{skill}/SKILL.md::cases"
            report_as_test(session, nodeid, nodeid, outcome, reason, upskill=None)

    def _update_baselines(self) -> None:
        """Write the baseline of each cell; not that of a skill that became worse than it."""
        compared, folder = self._settings.compare == "baseline", self._settings.baselines_dir
        self._updates = [
            baseline.update_baseline(gate.cell, folder, regressed=compared and gate.regressed)
            for gate in self._gates
            if not gate.cell.is_by_words
        ] or [baseline.Update(text="no baseline written: nothing was measured")]

    # First: pytest's own plugins write JUnit XML, print failures and the exit status in this hook.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Set the exit status, and write the report files."""
        is_written = not any(update.is_broken for update in self._updates)
        if self._measures:
            self._was_interrupted = exitstatus not in _RAN_TO_THE_END
            self._report = self._make_report(session)
            if not self._was_interrupted:
                session.exitstatus = exit_code.EXIT_CODES[exit_code.outcome(self._report)]
            is_written &= self._files.write(self._report, exitstatus)
        elif (
            exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._losses.found.nothing_changed
        ):
            session.exitstatus = pytest.ExitCode.OK
        if not is_written:
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR

    def _make_report(self, session: pytest.Session) -> Report:
        settings, losses = self._settings, self._losses
        budget, records = self._resources.budget, self._records
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        warned = warnings_of(reporter)
        lines = (text if path in text else f"{path}: {text}" for path, _, text in warned)
        is_stopped = self._was_interrupted or session.shouldfail or budget.stopped
        others_failed = session.testsfailed - len(self._unreadable) - records.failures
        made = Session(
            date=datetime.now(UTC).replace(microsecond=0),
            versions={name: version(name) for name in ("pytest-upskill", "pytest")}
            | {"python": platform.python_version()},
            models={model.label: model.resolved for model in settings.models},
            options={**_shown_options(settings), "max_cost": budget.limit},
            complete=not (is_stopped or self._unreadable),
            other_tests=records.other_tests,
            other_failures=max(0, others_failed),  # also those without a report: coverage too low
            unreadable=tuple(dict.fromkeys(line for lines in self._unreadable for line in lines)),
            without_trials=tuple(losses.lines()),
            without_cases=len(losses.without_cases),
            not_measured=(*losses.not_measured(), *filter(None, [budget.why_stopped])),
            skipped=tuple(skip_lines(skip_reasons(records.skipped, records.measured))),
            nothing_changed=losses.found.nothing_changed,
            unmeasured=records.unmeasured(losses.is_missed),
            warnings=(*lines, *losses.elsewhere()),
        )
        return Report(sessions=(made,), gates=tuple(self._gates))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Print what was found, and what it cost."""
        self._files.print_names(terminalreporter)
        if self._report is not None:
            reasons = self._why_undecided(self._report)
            self._terminal.print_results(terminalreporter, self._report, reasons)
            for line in annotations(terminalreporter, self._report, reasons):
                terminalreporter.line(line)
        # Also with -q: users must know which files changed.
        for update in self._updates:
            write(terminalreporter, update.text, red=update.is_broken)
        self._terminal.print_costs(terminalreporter, self._gates, exitstatus)

    def _why_undecided(self, report: Report) -> list[str]:
        """Return why nothing or not everything was measured, and what was not compared."""
        if self._was_interrupted:
            return []  # pytest says why
        lines = [*exit_code.why_undecided(report, in_its_run=True)]
        if exit_code.outcome(report) != "undecided":
            return lines
        reasons = lines or ["not everything ran, as other lines say"]
        return [f"exit code {exit_code.NOT_MEASURED}: {each}" for each in reasons]


_SHOWN = {
    *("runs", "min_pass_rate", "max_tokens", "compare"),
    *(limit.name for limit in fields(GateRule)),
}
"""Options that a report shows as they are; merged reports take the limits from there."""


def _shown_options(settings: Settings) -> dict[str, Any]:
    """Return the options that a report shows."""
    parameters = ((model, entry) for model in settings.models for entry in model.parameters.entries)
    return {
        **settings.model_dump(mode="json", include=_SHOWN),
        "cache": settings.cache_mode,
        "fail_on": sorted(settings.fail_on),
        "params": [f"{model.label}:{entry}" for model, entry in parameters],
        "baseline_update": settings.baseline_update or None,
        "judge": settings.judge.resolved if settings.judge else None,
    }
