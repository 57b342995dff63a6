"""Report files of a session, answers in JUnit XML, and the summary of GitHub Actions."""

import json
import os
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

# pytest has no public access to its XML writer under xdist (pytest#7767).
from _pytest.junitxml import bin_xml_escape, xml_key

from pytest_upskill.answers.changed_recordings import changed_files
from pytest_upskill.checks.code import Compile, Run
from pytest_upskill.figures.gate import Gate
from pytest_upskill.figures.wording import quoted_lines
from pytest_upskill.project.git import revision
from pytest_upskill.project.messages import safe_line
from pytest_upskill.report.document import ANSWER_LIMIT, Report, runs_of
from pytest_upskill.report.files.write import in_github_actions, write, write_for_github
from pytest_upskill.session.messages import RUN_REFUSED
from pytest_upskill.session.resources import RESOURCES
from pytest_upskill.session.settings import SETTINGS
from pytest_upskill.trials.result import RunResult


class Files:
    """The report files."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._settings = config.stash[SETTINGS]
        self._written: list[Path] = []
        self._problems: list[str] = []
        self._recordings: list[str] = []
        """Lines about the recordings, if the branch changed some."""
        self._baselines: list[str] = []
        """Lines about baselines, likewise."""

    def note_changes(self) -> None:
        """Ask git what the branch changed, before the session itself writes some of it."""
        settings = self._settings
        refs = (settings.ref, settings.changed_since)
        # Who records answers and compares nothing need not be told that they are new.
        is_told = any(refs) and self._config.stash[RESOURCES].cache.is_read
        if settings.cache_mode == "replay" or is_told:
            self._recordings = changed_files("recordings", settings.cache_dir, refs)
        if settings.compare == "baseline" or any(refs):
            self._baselines = changed_files("baselines", settings.baselines_dir, refs)

    def write(self, report: Report, exitstatus: int) -> bool:
        """Write the reports, and return whether all could be written.

        Args:
            report: The report.
            exitstatus: Exit status of pytest itself.
        """
        settings = self._settings
        if not any(run.completion.replayed for run in runs_of(report.gates)):
            self._recordings = []
        wanted = settings.reports or settings.runs_dir or in_github_actions(os.environ)
        if not wanted or exitstatus in RUN_REFUSED:
            return True
        report = self._presentable(report)
        writers = {
            file: partial(write, report, name, file) for name, file in settings.reports.items()
        }
        if (folder := settings.runs_dir) and report.gates:
            # Imported here: most runs are in no history.
            from pytest_upskill.report.history.runs import log_run

            writers[folder] = partial(log_run, report, folder)
        for path, write_path in writers.items():
            try:
                self._written.append(write_path())
            except OSError as error:
                self._problems.append(f"cannot write {path}: {error.strerror}")
        is_written = not self._problems
        self._problems += write_for_github(report, os.environ)
        return is_written

    def print_names(self, reporter: pytest.TerminalReporter) -> None:
        """Print the written files, problems, and changed recordings."""
        for problem in self._problems:
            reporter.line(safe_line(problem), red=True)
        # Also with -q: an edited recording can make any test pass.
        for line in (*self._recordings, *self._baselines):
            reporter.line(safe_line(line), yellow=True)
        if self._config.get_verbosity() >= 0:
            for file in self._written:
                reporter.line(safe_line(f"upskill report: {file}"))

    def _presentable(self, report: Report) -> Report:
        """Return the report with what only files show, from which all formats are written."""
        gates = tuple(_presentable(gate, f"{self._config.rootpath}/") for gate in report.gates)
        checks = {check.name for run in runs_of(gates) for check in run.checks}
        built = not checks.isdisjoint({Compile.name, Run.name})
        folders = {(self._config.rootpath / gate.cell.path).parent for gate in report.gates}
        level = self._config.stash[RESOURCES].compilers().open_sandbox().level if built else None
        session = replace(
            report.sessions[0],
            sandbox=level,
            recordings=(*self._recordings, *self._baselines),
            revision=revision(self._settings.project, folders, self._settings.cache_dir),
        )
        return Report(sessions=(session,), gates=gates)


def _presentable(gate: Gate, root: str) -> Gate:
    """Return a gate without the ends of long answers, and errors with paths from the rootdir."""
    below = re.compile(rf"(?<!:){re.escape(root)}")  # "//" of a URL is no path
    trials = (
        replace(
            trial,
            runs=tuple(map(_shorter_run, trial.runs)),
            # Some name the folder of recordings; no other machine has that of this one.
            errors=tuple(below.sub("", error) for error in trial.errors),
        )
        for trial in gate.cell.trials
    )
    return replace(gate, cell=replace(gate.cell, trials=tuple(trials)))


def _shorter_run(run: RunResult) -> RunResult:
    completion = run.completion
    calls = (
        replace(
            call,
            arguments=call.arguments if len(json.dumps(call.arguments)) <= ANSWER_LIMIT else {},
            malformed=call.malformed[:ANSWER_LIMIT],
        )
        for call in completion.tool_calls
    )
    shorter = replace(
        completion,
        text=completion.text[:ANSWER_LIMIT],
        reasoning=completion.reasoning[:ANSWER_LIMIT],
        tool_calls=tuple(calls),
    )
    left_out = run.left_out + max(0, len(completion.text) - ANSWER_LIMIT)
    return replace(run, completion=shorter, left_out=left_out)


def add_to_junit(config: pytest.Config, report: pytest.TestReport) -> None:
    """Add the answers of a failed trial, which a terminal has in part, as ``system-out``.

    Called after pytest's writer, so that they follow the failure.
    """
    xml = config.stash.get(xml_key, None)  # None without --junitxml
    if xml is None or report.passed or not hasattr(report, "upskill"):
        return
    reporter = xml.node_reporter(report)
    for element in reporter.nodes:
        message = element.get("message")
        # Only its first line: pytest writes the complete report as text.
        if message is not None and element.text:
            # Every known reader accepts an attribute of this length.
            element.set("message", message.partition("\n")[0][:1000])
    if report.when == "call" and report.upskill is not None:
        missed = (run.completion.text for run in report.upskill.result.runs if not run.passed)
        for text in dict.fromkeys(missed):
            element = ET.Element("system-out")
            redacted = config.stash[RESOURCES].redactor.redact(quoted_lines(text))
            element.text = bin_xml_escape(redacted)
            reporter.append(element)
