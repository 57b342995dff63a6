"""Terminal output: header, words for results without the skill, and the table of cells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.project.messages import safe_line
from pytest_upskill.project.project import CONFTEST, unused_settings
from pytest_upskill.report.notes import notes
from pytest_upskill.report.terminal.table import (
    LEGEND,
    TRIGGER_LEGEND,
    table,
    trigger_notes,
    trigger_table,
)
from pytest_upskill.session.options.settings import SETTINGS
from pytest_upskill.session.output.lines import QUIETEST, lines_of, write
from pytest_upskill.session.results.cells import unmeasured_skills
from pytest_upskill.session.results.exit_code import ExitCode
from pytest_upskill.session.results.results import RESULTS


class Terminal:
    """Plugin that prints through pytest's reporter and respects -q, -v and --color."""

    def __init__(self, config: pytest.Config, exit_code: ExitCode) -> None:
        self._settings = config.stash[SETTINGS]
        self._results = config.stash[RESULTS]
        self._exit_code = exit_code

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        """Return the models and the number of runs."""
        models = ", ".join(f"{model.label} ({model.resolved})" for model in self._settings.models)
        single = ", ".join(model.label for model in self._settings.single_runs)
        why = f"; 1 for {single}, as further runs would be copies"
        runs = f"{self._settings.runs}{why if single else ''}"
        return lines_of(f"upskill: {models}; runs: {runs}", config)

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """Return a letter and word of its own for a trial that never fails, counted as passed."""
        record = getattr(report, "upskill", None)
        if record is None or not report.passed or record.result.decides:
            return None
        # Any category but "passed" would make pytest's last line yellow.
        if record.result.passed:
            return "passed", "+", ("BASE HIT", {"cyan": True})
        return "passed", "-", ("BASE MISS", {"cyan": True})

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Print a row for each cell, with -v also for each case, and warnings about the session."""
        # Also with -q: without these settings the session measures something else.
        for line in _unused_settings(config, self._settings.project):
            write(terminalreporter, line, yellow=True)
        # As with pytest-cov: -q keeps the tables, -qq drops them.
        if config.get_verbosity() > QUIETEST:
            self._figures(terminalreporter, config)
            self._triggers(terminalreporter, config)
        # Also with -qq: nothing else says why a run without failures is not green.
        for line in self._exit_code.lines(quiet=config.get_verbosity() < 0):
            write(terminalreporter, line, yellow=True)
        # Also with -q: users must know which files changed.
        for update in self._results.baselines:
            write(terminalreporter, update.text, red=update.refused)

    def _figures(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        if self._results.gates:
            self._table(terminalreporter, config)
        if config.get_verbosity() < 0:
            return
        if self._results.gates:
            write(terminalreporter, LEGEND)
        if self._results.decisions:
            for each in unmeasured_skills(self._results.records):
                write(terminalreporter, str(each), yellow=True)
        for note in notes(self._results.gates, verbose=config.get_verbosity() > 0):
            write(terminalreporter, note)
        for orphan in self._results.orphans:
            write(terminalreporter, orphan)

    def _triggers(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Print a line for each skill on each model; -v adds the queries, -q leaves notes out."""
        gates = self._results.trigger_gates
        if not gates:
            return
        terminalreporter.section("triggers: is the skill chosen?", "=", bold=True)
        width = config.get_terminal_writer().fullwidth
        for line, gate in trigger_table(gates, width, queries=config.get_verbosity() > 0):
            terminalreporter.line(safe_line(line), red=gate is not None and gate.is_red)
        if config.get_verbosity() >= 0:
            write(terminalreporter, TRIGGER_LEGEND)
            for note in trigger_notes(gates, self._settings.thresholds):
                write(terminalreporter, note)

    def _table(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        gates = self._results.gates
        three = any(gate.cell.old_skill for gate in gates)
        arms = "without -> old -> with" if three else "without -> with"
        terminalreporter.section(f"skills: {arms}", "=", bold=True)
        width = config.get_terminal_writer().fullwidth
        for line, gate in table(gates, width, cases=config.get_verbosity() > 0):
            red = gate is not None and gate.is_red
            verdict = None if gate is None or red else gate.verdict
            terminalreporter.line(
                safe_line(line), red=red, green=verdict == "helps", yellow=verdict == "missing data"
            )


def _unused_settings(config: pytest.Config, project: Path) -> Iterator[str]:
    """Yield a line for each settings file of the project that pytest does not use."""
    if config.getoption("rootdir") is not None:
        return
    plugins = (getattr(plugin, "__file__", None) for plugin in config.pluginmanager.get_plugins())
    used = {Path(file) for file in plugins if file}
    ini = config.inipath
    for file in unused_settings(project, config.rootpath, used | ({ini} if ini else set())):
        name = os.path.relpath(file, config.invocation_params.dir)
        if file.name != CONFTEST:
            cure = f"{ini} is nearer: add -c {name}"
        elif ini:
            cure = f"{ini} is nearer: add --confcutdir={Path(name).parent}"
        else:
            cure = f"the rootdir is {config.rootpath}: add --rootdir={Path(name).parent}"
        yield f"upskill: {name} does not apply, as {cure}"
