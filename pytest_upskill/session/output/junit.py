"""Additions to pytest's JUnit XML: cells as suite properties, and answers of failed trials."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

# pytest has no public access to its XML writer under xdist (pytest#7767).
from _pytest.junitxml import LogXML, bin_xml_escape, xml_key

from pytest_upskill.figures.wording import ANSWER, quoted_lines
from pytest_upskill.report.junit.properties import figures, mirror_properties
from pytest_upskill.session.options.settings import SETTINGS
from pytest_upskill.session.results.results import RESULTS
from pytest_upskill.trials.result import TrialRecord

_LONGEST_MESSAGE = 1000
"""Characters of an attribute that every known reader accepts."""


class JUnit:
    """Plugin that adds data to JUnit XML in the process that writes it; inactive without it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._results = config.stash[RESULTS]
        self._mirrors = config.stash[SETTINGS].junit_properties
        self._answers: dict[str, list[str]] = {}

    @property
    def _xml(self) -> LogXML | None:
        return self._config.stash.get(xml_key, None)

    # First: pytest's writer drops a test after its teardown report.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the answers of a failed trial as ``system-out``, and the dashboards' properties."""
        if report.when == "call" and report.failed:
            answers = [text for name, text in report.sections if name == ANSWER]
            record: TrialRecord | None = getattr(report, "upskill", None)
            self._answers[report.nodeid] = answers + _reasoning(record)
        if report.when == "teardown" and self._xml is not None:
            reporter = self._xml.node_reporter(report)
            for element in reporter.nodes:
                _shorten(element)
            for text in self._answers.pop(report.nodeid, ()):
                element = ET.Element("system-out")
                element.text = bin_xml_escape(text)
                reporter.append(element)
            report.user_properties += mirror_properties(report.user_properties, self._mirrors)

    # First: pytest's writer closes the file in the same hook.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Write the figures of every cell as suite properties."""
        if self._xml is not None:
            for gate in self._results.decisions:
                place = f"{gate.cell.title}-{gate.cell.model}"
                for name, value in figures(gate):
                    self._xml.add_global_property(f"{name}[{place}]", value)


def _reasoning(record: TrialRecord | None) -> list[str]:
    """Return the reasoning of the runs that did not pass, quoted and without repeats."""
    if record is None:
        return []
    texts = dict.fromkeys(run.completion.reasoning for run in record.result.runs if not run.passed)
    return [f"reasoning:\n{quoted_lines(text)}" for text in texts if text]


def _shorten(element: ET.Element) -> None:
    """Cut a failure message to its first line, as pytest writes the complete report there."""
    message = element.get("message")
    if message is not None and element.text:
        element.set("message", message.partition("\n")[0][:_LONGEST_MESSAGE])
